/** Waits for devices. */
export interface Presence {
  /** Resolves with "online" as soon as the device is linked, and with "late" or "aborted" where that does not come. */
  awaitOnline(deviceId: string, options: { untilMs: number; signal: AbortSignal }): Promise<Arrival>;
  /** Ends all waits without an answer: the replica that resumes the calls waits again. */
  close(): void;
}

/** What came of waiting for a device. */
export type Arrival = "online" | "late" | "aborted";

/** Dependencies of waiting. */
export interface PresenceOptions {
  /** Whether a device is linked, to whichever replica. */
  isOnline(deviceId: string): boolean;
  now(): number;
  /** How often to look, in milliseconds. Default 250. */
  pollMs?: number;
}

/** One timer looks at all who wait: presence is in memory, where the directory of all replicas keeps it. */
export function createPresence({ isOnline, now, pollMs = 250 }: PresenceOptions): Presence {
  const waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const lookAtAll = () => {
    for (const look of waiting) look();
    if (waiting.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    awaitOnline: (deviceId, { untilMs, signal }) =>
      new Promise((resolve) => {
        const end = (arrival: Arrival) => {
          waiting.delete(look);
          signal.removeEventListener("abort", look);
          resolve(arrival);
        };
        const look = () => {
          if (closed) return;
          if (signal.aborted) end("aborted");
          else if (now() >= untilMs) end("late");
          else if (isOnline(deviceId)) end("online");
        };
        waiting.add(look);
        signal.addEventListener("abort", look);
        look();
        if (waiting.size > 0 && !closed) timer ??= setInterval(lookAtAll, pollMs).unref();
      }),
    close() {
      closed = true;
      clearInterval(timer);
      waiting.clear();
    },
  };
}
