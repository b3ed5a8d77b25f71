/** How much live output of each call may be sent on one link, as the other side says. */
export interface OutputWindows {
  /**
   * The other side asks for a call, and takes so many bytes of its output: 0 for none, undefined for as many as the link
   * carries. What was sent before does not count.
   */
  ask(callId: string, untilBytes: bigint | undefined): void;
  /** It takes so many bytes in all since it asked; 0 for no more. */
  extend(callId: string, untilBytes: bigint): void;
  /** Whether the other side wants the call's output. */
  follows(callId: string): boolean;
  /** Undefined where some may be sent; otherwise resolves when it may, or is not wanted any more. */
  room(callId: string): Promise<void> | undefined;
  /** Counts what was sent. */
  sent(callId: string, bytes: number): void;
  /** The call has ended. */
  forget(callId: string): void;
  /** The link has ended: nothing waits for it any more. */
  end(): void;
  /** How many calls have been asked for and have not ended. */
  readonly size: number;
}

interface Window {
  untilBytes: number;
  sentBytes: number;
  waiting: PromiseWithResolvers<void> | undefined;
}

const UNBOUNDED = 2n ** 64n;

export function createOutputWindows(): OutputWindows {
  const windows = new Map<string, Window>();
  const wake = (window: Window): void => {
    window.waiting?.resolve();
    window.waiting = undefined;
  };
  return {
    ask(callId, untilBytes = UNBOUNDED) {
      const known = windows.get(callId);
      windows.set(callId, { untilBytes: Number(untilBytes), sentBytes: 0, waiting: undefined });
      if (known !== undefined) wake(known);
    },
    extend(callId, untilBytes) {
      const window = windows.get(callId);
      if (window === undefined) return;
      window.untilBytes = Number(untilBytes);
      if (untilBytes === 0n || window.sentBytes < window.untilBytes) wake(window);
    },
    follows: (callId) => (windows.get(callId)?.untilBytes ?? 0) > 0,
    room(callId) {
      const window = windows.get(callId);
      if (window === undefined || window.untilBytes === 0 || window.sentBytes < window.untilBytes) return undefined;
      window.waiting ??= Promise.withResolvers();
      return window.waiting.promise;
    },
    sent(callId, bytes) {
      const window = windows.get(callId);
      if (window !== undefined) window.sentBytes += bytes;
    },
    forget(callId) {
      const window = windows.get(callId);
      if (window === undefined) return;
      windows.delete(callId);
      wake(window);
    },
    end() {
      for (const window of windows.values()) wake(window);
      windows.clear();
    },
    get size() {
      return windows.size;
    },
  };
}
