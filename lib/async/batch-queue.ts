/** Items that wait to go into a stream of batches. */
export interface BatchQueue<T> {
  /** Adds an item. Nothing happens to items pushed after the end. */
  push(item: T): void;
  /** Undefined while less than the high water waits; otherwise resolves when it does. A producer that can pause awaits it. */
  room(): Promise<void> | undefined;
  /** Ends the stream after what waits, or with an error at once. */
  end(error?: Error): void;
  /** The batches. Can be read once. */
  batches(): AsyncGenerator<T[], void, void>;
}

/** How large batches grow, and how much may wait. */
export interface BatchQueueOptions<T> {
  /** Most items in a batch. Default 256. */
  maxBatch?: number;
  /** Items from which `room` makes a producer wait. Default 1024. */
  highWater?: number;
  /** Bytes from which `room` makes a producer wait, where `sizeOf` is given. Default: any number. */
  highWaterBytes?: number;
  /** About how large an item is on the wire, in bytes. Without it batches are bounded by count only. */
  sizeOf?: (item: T) => number;
  /** Most bytes in a batch, but for a single item that is larger. Default 1 MiB. */
  maxBytes?: number;
}

/**
 * Gathers what is pushed while the reader is busy into one batch: one message on the wire carries many calls, which is
 * what makes a multiplexed stream cheap under load and adds no wait without load.
 */
export function createBatchQueue<T>(options: BatchQueueOptions<T> = {}): BatchQueue<T> {
  const { maxBatch = 256, highWater = 1024, highWaterBytes = Infinity, sizeOf, maxBytes = 1024 * 1024 } = options;
  let waiting: T[] = [];
  let waitingBytes = 0;
  let ended = false;
  let failure: Error | undefined;
  let wake: (() => void) | undefined;
  let roomy: (() => void)[] = [];

  const wakeReader = () => {
    wake?.();
    wake = undefined;
  };
  const isFull = () => waiting.length >= highWater || waitingBytes >= highWaterBytes;
  const makeRoom = () => {
    if (roomy.length === 0 || isFull()) return;
    for (const resolve of roomy) resolve();
    roomy = [];
  };

  const take = (): T[] => {
    let count = Math.min(waiting.length, maxBatch);
    if (sizeOf !== undefined) count = fitting(waiting, count, sizeOf, maxBytes);
    if (count === waiting.length) {
      const all = waiting;
      waiting = [];
      waitingBytes = 0;
      return all;
    }
    const some = waiting.splice(0, count);
    if (sizeOf !== undefined) for (const item of some) waitingBytes -= sizeOf(item);
    return some;
  };

  // A generator, because a transport calls `throw` on what it reads from.
  async function* batches(): AsyncGenerator<T[], void, void> {
    try {
      for (;;) {
        if (failure !== undefined) throw failure;
        if (waiting.length > 0) {
          const batch = take();
          makeRoom();
          yield batch;
        } else if (ended) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      ended = true;
      waiting = [];
      waitingBytes = 0;
      makeRoom();
    }
  }

  return {
    push(item) {
      if (ended) return;
      waiting.push(item);
      if (sizeOf !== undefined) waitingBytes += sizeOf(item);
      wakeReader();
    },
    room() {
      if (ended || !isFull()) return undefined;
      return new Promise((resolve) => {
        roomy.push(resolve);
      });
    },
    end(error) {
      ended = true;
      failure = error;
      if (error !== undefined) [waiting, waitingBytes] = [[], 0];
      wakeReader();
      makeRoom();
    },
    batches,
  };
}

/** How many of the first `count` items fit into `maxBytes`; at least one. */
function fitting<T>(items: readonly T[], count: number, sizeOf: (item: T) => number, maxBytes: number): number {
  let bytes = 0;
  for (let taken = 0; taken < count; taken++) {
    bytes += sizeOf(items[taken] as T);
    if (bytes > maxBytes) return Math.max(1, taken);
  }
  return count;
}
