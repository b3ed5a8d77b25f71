import type { Waiting } from "./waiting.ts";

/** Sandboxes that were started ahead, because a start takes longer than most programs that run in one. */
export interface Pool extends Disposable {
  /** One for a run: a waiting one, or else a new one. */
  take(): Promise<Waiting>;
  /**
   * To be called when a run has ended: starts what is missing while the machine has nothing better to do, which is when
   * no run has followed for a moment, or when few are left.
   */
  refill(): void;
  /** Ends those that wait: what they show is not so any more. */
  clear(): void;
}

/** How a pool is kept. */
export interface PoolOptions {
  start(): Promise<Waiting>;
  /** How many wait at most while it is in use: one more after each use. */
  most: number;
  /** How long one may wait, in milliseconds. Then it is replaced, so that what it hides is not long ago. Default 60,000. */
  maxAgeMs?: number;
  /** For how long after a use one waits, in milliseconds; after that none does. Default 600,000. */
  keepMs?: number;
}

/** After how long without a run the pool is made full, in milliseconds. */
const PAUSE_MS = 50;

/** A pool that begins empty, and is empty again when it is not used. */
export function createPool({ start, most, maxAgeMs = 60_000, keepMs = 600_000 }: PoolOptions): Pool {
  let ready: Waiting[] = [];
  let starting = 0;
  let usedAt = performance.now();
  let uses = 0;
  let closed = false;
  /** Runs that wait for one that is being started: it comes sooner than one that is started now. */
  const takers: (() => void)[] = [];

  const retire = (keep: (waiting: Waiting) => boolean): void => {
    for (const waiting of ready) if (!keep(waiting)) waiting.close();
    ready = ready.filter(keep);
  };
  const isFresh = (waiting: Waiting): boolean => !waiting.ended && performance.now() - waiting.startedAt < maxAgeMs;
  const startOne = async (): Promise<void> => {
    starting++;
    const waiting = await start().catch(() => undefined);
    starting--;
    if (closed) waiting?.close();
    else if (waiting !== undefined) ready.push(waiting);
    // Where none can be started the run tries itself, and reports why it cannot.
    takers.shift()?.();
  };
  const fill = (count: number): void => {
    while (!closed && ready.length + starting < count) void startOne();
  };
  // Soon after a use several wait, later one, and at last none.
  const target = (): number => Math.min(uses, most);
  let pause: NodeJS.Timeout | undefined;
  const timer = setInterval(() => {
    const idleMs = performance.now() - usedAt;
    if (idleMs > maxAgeMs) uses = 1;
    retire((waiting) => isFresh(waiting) && idleMs < keepMs);
    if (idleMs < keepMs) fill(1);
  }, maxAgeMs / 2);
  timer.unref();

  return {
    async take() {
      clearTimeout(pause);
      usedAt = performance.now();
      uses++;
      retire(isFresh);
      if (ready.length === 0 && starting > takers.length) await new Promise<void>((resolve) => takers.push(resolve));
      return ready.shift() ?? (await start());
    },
    refill() {
      // A start takes more of the processor than many programs: one beside each run would slow all of them down.
      if (ready.length + starting <= target() / 4) {
        fill(target());
        return;
      }
      clearTimeout(pause);
      pause = setTimeout(() => fill(target()), PAUSE_MS).unref();
    },
    clear: () => retire(() => false),
    [Symbol.dispose]() {
      closed = true;
      clearInterval(timer);
      clearTimeout(pause);
      retire(() => false);
    },
  };
}
