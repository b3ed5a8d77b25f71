import { afterAll, beforeAll } from "vitest";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { usePostgres } from "./test-policy.ts";

// Set up before each test file that vitest.config.ts runs on PostgreSQL too: a database for each state folder.
let server: PostgresServer;

/** How long starting and clearing up may take on a busy machine, in milliseconds. */
const HOOK_MS = 180_000;

usePostgres(() => server.newDatabase());
beforeAll(async () => {
  server = await startPostgresServer();
}, HOOK_MS);
// There is a database for each test by then, with a thousand files each.
afterAll(async () => server.close(), HOOK_MS);
