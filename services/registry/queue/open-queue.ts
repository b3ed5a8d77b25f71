import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { CallQueue } from "../calls/call-queue.ts";
import { acceptAllTokens, type TokenStatuses } from "../calls/token-statuses.ts";
import type { Directory } from "../devices/directory.ts";
import type { RegistryTables } from "../tables.ts";
import { createPresence } from "./presence.ts";
import { createQueue } from "./queue.ts";
import { createQueueStore } from "./store.ts";

/** What the queue of a registry is opened on. */
export interface OpenQueueOptions {
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  directory: Pick<Directory, "byId">;
  /** Whether those who asked a while ago may still ask. Default: all may. */
  tokenStatuses: TokenStatuses | undefined;
  now(): number;
}

/** The queue of a registry. Closing it leaves what waits to the next start, or to another replica. */
export function openQueue(options: OpenQueueOptions): CallQueue & { close(): void } {
  const { db, writes, directory, tokenStatuses = acceptAllTokens, now } = options;
  const presence = createPresence({ isOnline: (deviceId) => directory.byId(deviceId)?.online === true, now });
  const queue = createQueue({ store: createQueueStore(db, writes), presence, directory, tokenStatuses, now });
  return { ...queue, close: presence.close };
}
