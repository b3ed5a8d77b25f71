/** Those who read the live output of one call. */
export interface Followers {
  isFollowed(): boolean;
  /** Calls back when the first one comes or the last one leaves. The result stops that. */
  onChange(listener: () => void): () => void;
}

/** How much live output of one call may be in flight from its device, in bytes, before a program has to wait. */
export const OUTPUT_WINDOW_BYTES = 128 * 1024;

/** Bounds what a device sends of one call's output to the pace of those who follow it. */
export interface OutputFlow {
  /** A session in which the call is asked for begins: how much output may be sent. Undefined for any amount. */
  begin(): bigint | undefined;
  /** Output came; `taken` resolves when the followers have read it. Undefined: there are none, or they have. */
  received(bytes: number, taken: Promise<void> | undefined): void;
  /** The call has ended. */
  end(): void;
}

/**
 * @param followers undefined where the session's own pace is enough.
 * @param extend sends the device how much it may send in all since the call was asked for in this session; 0 for no more.
 */
export function createOutputFlow(
  followers: Followers | undefined,
  extend: (untilBytes: bigint) => unknown,
): OutputFlow {
  let session = 0;
  let takenBytes = 0;
  let untilBytes = 0;

  const stopListening = followers?.onChange(() => {
    if (session === 0) return;
    untilBytes = followers.isFollowed() ? takenBytes + OUTPUT_WINDOW_BYTES : 0;
    extend(BigInt(untilBytes));
  });
  const onTaken = (bytes: number): void => {
    takenBytes += bytes;
    const next = takenBytes + OUTPUT_WINDOW_BYTES;
    // Not for each chunk: a quarter of the window at a time keeps a fast program going.
    if (untilBytes === 0 || next - untilBytes < OUTPUT_WINDOW_BYTES / 4) return;
    untilBytes = next;
    extend(BigInt(untilBytes));
  };

  return {
    begin() {
      session++;
      takenBytes = 0;
      untilBytes = followers?.isFollowed() === true ? OUTPUT_WINDOW_BYTES : 0;
      return followers && BigInt(untilBytes);
    },
    received(bytes, taken) {
      if (followers === undefined) return;
      const current = session;
      if (taken === undefined) onTaken(bytes);
      else void taken.then(() => current === session && onTaken(bytes));
    },
    end: () => stopListening?.(),
  };
}
