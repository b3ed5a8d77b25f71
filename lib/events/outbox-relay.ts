import type { Database } from "../store/database.ts";
import type { GroupCommit } from "../store/group-commit.ts";
import type { Lease } from "../store/lease.ts";
import { type EventBus, type EventLogger, SILENT_LOGGER } from "./bus.ts";
import { createOutbox, type Outbox, type OutboxEntry } from "./outbox.ts";

export interface OutboxRelayOptions<T> {
  db: Database<T>;
  /** The publisher's outbox. */
  table: keyof T & string;
  writes: GroupCommit<T>;
  bus: EventBus;
  /**
   * Where several processes share the database: only the one that holds the lease publishes, and another one goes on as
   * soon as it holds it. Default: this relay is the only one.
   */
  lease?: Pick<Lease, "held" | "onChange">;
  logger?: EventLogger;
  /** How often to look for entries that no wake-up announced, in milliseconds. Default 1000. */
  pollMs?: number;
}

export interface OutboxRelay {
  /** Says that there is something to publish; called after the transaction has committed. Never waits. */
  wake(): void;
  /** How many events wait. */
  pending(): Promise<number>;
  /** Resolves when the relay has stopped; what was not published stays in the outbox. */
  close(): Promise<void>;
}

const BATCH_ENTRIES = 256;

/** One batch is in memory twice and is one write to the bus's socket. */
const BATCH_BYTES = 4 * 1024 * 1024;

/** How long to gather events after a wake-up, so that they share one write. */
const GATHER_MS = 20;

const LONGEST_RETRY_MS = 5_000;

/**
 * Starts to publish a database's outbox in its order, batch by batch. An entry is deleted after the bus has it; a crash
 * between the two repeats it, with the same id. While the bus is unavailable the relay tries again, after 100 ms at first
 * and up to 5 s later. One relay for one database, or one in each of its processes with a lease that they share. A holder
 * that is suspended in the middle of a batch and loses the lease may repeat that batch when it goes on, while the next
 * holder is further.
 */
export function createOutboxRelay<T>(options: OutboxRelayOptions<T>): OutboxRelay {
  const { writes, bus, lease, logger = SILENT_LOGGER, pollMs = 1_000 } = options;
  const outbox = createOutbox(options.db, options.table);
  const wakeUps = createBell();
  const closing = createBell();
  let closed = false;
  let failures = 0;

  const mayPublish = () => lease === undefined || lease.held;

  /** Resolves with whether more waits for this relay. */
  async function publishOldest(): Promise<boolean> {
    if (!mayPublish()) return false;
    const { entries, more } = await nextBatch(outbox);
    // Asked again: reading may have taken longer than the lease lasts.
    if (entries.length === 0 || !mayPublish()) return false;
    await bus.publish(entries.map((entry) => entry.envelope));
    // What a power cut brings back is published again, with the same id.
    await writes.writeThenSync((trx) => outbox.remove(trx, entries));
    return more;
  }

  async function nextWakeUp(): Promise<void> {
    await wakeUps.wait(pollMs);
    await closing.wait(GATHER_MS);
  }

  async function relay(): Promise<void> {
    while (!closed) {
      try {
        const more = await publishOldest();
        failures = 0;
        if (!more) await nextWakeUp();
      } catch (error: unknown) {
        failures += 1;
        if (failures === 1) logger.warn({ err: error }, "events not published, they wait in the outbox");
        // Wake-ups do not shorten this pause: an unavailable bus must not be asked for every event.
        await closing.wait(Math.min(LONGEST_RETRY_MS, 50 * 2 ** failures));
      }
    }
  }

  const leaveLease = lease?.onChange((held) => {
    if (held) wakeUps.ring();
  });
  const stopped = relay();
  return {
    wake: () => wakeUps.ring(),
    pending: () => outbox.count(),
    async close() {
      closed = true;
      leaveLease?.();
      wakeUps.ring();
      closing.ring();
      await stopped;
    },
  };
}

async function nextBatch(outbox: Outbox): Promise<{ entries: OutboxEntry[]; more: boolean }> {
  const oldest = await outbox.oldest(BATCH_ENTRIES);
  let bytes = 0;
  const entries = oldest.filter(({ envelope }, i) => {
    bytes += envelope.payload.length;
    return i === 0 || bytes <= BATCH_BYTES;
  });
  return { entries, more: oldest.length === BATCH_ENTRIES || entries.length < oldest.length };
}

interface Bell {
  /** Ends the present wait or, when there is none, the next one. */
  ring(): void;
  /** Resolves on a ring or after so many milliseconds. */
  wait(milliseconds: number): Promise<void>;
}

function createBell(): Bell {
  let rung = false;
  let wake = () => {};
  const sleep = (milliseconds: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  return {
    ring() {
      rung = true;
      wake();
    },
    async wait(milliseconds) {
      if (!rung) await sleep(milliseconds);
      rung = false;
    },
  };
}
