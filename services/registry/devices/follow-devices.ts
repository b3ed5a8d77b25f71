import { setImmediate } from "node:timers/promises";
import { createSharedRun } from "../../../lib/async/shared-run.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { DeviceRow, DeviceStore } from "./device-store.ts";

/** Follows the directory in the database. */
export interface Follower {
  /** Brings in what has changed. Those who ask at the same time share one look that begins after they asked. */
  look(): Promise<void>;
  close(): Promise<void>;
}

/** What following rests on. */
export interface FollowerOptions {
  store: Pick<DeviceStore, "since">;
  /** How often to look by itself, in milliseconds; 0 never. */
  pollMs: number;
  apply(row: DeviceRow): void;
  logger: Logger;
}

/** Follows from the beginning; the first `look` brings everything in. */
export function createFollower({ store, pollMs, apply, logger }: FollowerOptions): Follower {
  // Below the number of what was written before changes had numbers.
  let last = -1;

  const lookNow = async (): Promise<void> => {
    for (const row of await store.since(last)) {
      last = Math.max(last, row.change);
      try {
        apply(row);
      } catch (err: unknown) {
        // One device's row is nobody else's trouble.
        logger.error({ err, device: row.name }, "a device in the database cannot be read");
      }
      // A manifest takes a while to read, and there may be a thousand: calls and heartbeats go on in between.
      await setImmediate();
    }
  };
  const looking = createSharedRun(lookNow);
  const lookQuietly = () =>
    looking.run().catch((error: unknown) => logger.warn({ err: error }, "the directory of devices could not be read"));
  const timer = pollMs === 0 ? undefined : setInterval(() => void lookQuietly(), pollMs);

  return {
    look: looking.run,
    async close() {
      clearInterval(timer);
      await looking.quiet();
    },
  };
}
