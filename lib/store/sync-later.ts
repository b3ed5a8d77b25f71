import { CompiledQuery } from "kysely";

/**
 * Inside a transaction: its COMMIT need not wait for the disk. PostgreSQL's own statement; the SQLite dialect does the
 * same when it meets it.
 */
export const SYNC_LATER = CompiledQuery.raw("set local synchronous_commit = off");
