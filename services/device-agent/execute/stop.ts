/** Why a call was stopped. */
export type StopKind = "timed_out" | "canceled" | "shutdown";

/** What stops a call: its deadline, its caller, or the end of the agent. The first of them counts. */
export interface Stop {
  /** Aborted when the call shall stop. The reason is an Error named "TimeoutError" for the deadline, else "AbortError". */
  readonly signal: AbortSignal;
  /** Why; undefined while it shall not. */
  readonly kind: StopKind | undefined;
  /** Stops it. */
  stop(kind: StopKind): void;
  /** Resolves some time after the stop, in case the call does not heed it. */
  readonly overdue: Promise<void>;
  /** Ends the watch over the deadline. */
  release(): void;
}

/** How long a stopped call may take to end, in milliseconds: more than killing a process tree takes. */
const HEED_MS = 10_000;

/** Watches over a call that may take so many milliseconds from now. */
export function createStop(timeoutMs: number, heedMs = HEED_MS): Stop {
  const controller = new AbortController();
  const { promise: overdue, resolve } = Promise.withResolvers<void>();
  let kind: StopKind | undefined;
  let timer: NodeJS.Timeout;
  const stop = (why: StopKind): void => {
    if (kind !== undefined) return;
    kind = why;
    clearTimeout(timer);
    timer = setTimeout(resolve, heedMs);
    controller.abort(new DOMException(TEXT[why], why === "timed_out" ? "TimeoutError" : "AbortError"));
  };
  timer = setTimeout(stop, timeoutMs, "timed_out");
  return {
    signal: controller.signal,
    get kind() {
      return kind;
    },
    stop,
    overdue,
    release: () => clearTimeout(timer),
  };
}

const TEXT: Readonly<Record<StopKind, string>> = {
  timed_out: "the call's time is up",
  canceled: "the call was canceled",
  shutdown: "the device agent is shutting down",
};
