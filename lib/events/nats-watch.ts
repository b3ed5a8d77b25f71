/** Whether the connection is up. */
export interface ConnectionWatch {
  isUp(): boolean;
  /** True when it will never be up again. */
  isClosed(): boolean;
  /** Resolves when the connection is up, or closed. */
  whenUp(): Promise<void>;
  /** Calls back each time the connection breaks, until the returned function is called. */
  onDown(listener: () => void): () => void;
}

/** A watch, for whoever holds the connection. */
export interface HeldWatch extends ConnectionWatch {
  goUp(): void;
  goDown(): void;
  /** It will never be up again. */
  end(): void;
}

/** A connection that is not up yet. */
export function createWatch(): HeldWatch {
  const downListeners = new Set<() => void>();
  let up = Promise.withResolvers<void>();
  let isUp = false;
  let isClosed = false;

  function goDown(): void {
    if (!isUp) return;
    up = Promise.withResolvers<void>();
    isUp = false;
    for (const listener of [...downListeners]) listener();
  }

  return {
    isUp: () => isUp,
    isClosed: () => isClosed,
    whenUp: () => up.promise,
    onDown(listener) {
      downListeners.add(listener);
      return () => downListeners.delete(listener);
    },
    goUp() {
      if (isClosed) return;
      isUp = true;
      up.resolve();
    },
    goDown,
    end() {
      isClosed = true;
      goDown();
      up.resolve();
    },
  };
}
