/** A connection beside the one in use, made while that is suspect. */
export interface Spare<T> {
  /**
   * Begins to make one, unless one is ready or being made. When it is ready, `onReady` is called where it is still wanted, and
   * it is discarded where it is not.
   */
  prepare(isWanted: () => boolean, onReady: () => void): void;
  /** The one that is ready or being made, or else a new one. Rejects where it cannot be made. */
  take(): Promise<T>;
  /** Discards the one that is ready or being made. */
  discard(): void;
}

/** How connections are made and given up. */
export interface SpareOptions<T> {
  connect(): Promise<T>;
  close(connection: T): void;
}

/** At most one at a time. */
export function createSpare<T>({ connect, close }: SpareOptions<T>): Spare<T> {
  let spare: Promise<T> | undefined;
  const remove = (): Promise<T> | undefined => {
    const removed = spare;
    spare = undefined;
    return removed;
  };
  const discard = (): void => {
    // One that failed has nothing to close.
    remove()?.then(close, () => undefined);
  };
  return {
    prepare(isWanted, onReady) {
      if (spare !== undefined) return;
      const made = connect();
      spare = made;
      made.then(
        () => {
          if (spare !== made) return;
          if (isWanted()) onReady();
          else discard();
        },
        () => {
          if (spare === made) spare = undefined;
        },
      );
    },
    take: () => remove() ?? connect(),
    discard,
  };
}
