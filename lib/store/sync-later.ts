import { CompiledQuery } from "kysely";

/** Inside a transaction of PostgreSQL: its COMMIT need not wait for the disk. */
export const SYNC_LATER = CompiledQuery.raw("set local synchronous_commit = off");
