import { afterAll, beforeAll } from "vitest";
import { type PostgresServer, startPostgresServer } from "../../testkit/postgres-server.ts";
import { usePostgres } from "./testing/test-policy.ts";

// The tests of these files again, as they stand, with a PostgreSQL database for each state folder.
let server: PostgresServer;

/** How long starting and clearing up may take on a busy machine, in milliseconds. */
const HOOK_MS = 180_000;

usePostgres(() => server.newDatabase());
beforeAll(async () => {
  server = await startPostgresServer();
}, HOOK_MS);
// There is a database for each test by then, with a thousand files each.
afterAll(async () => server.close(), HOOK_MS);

await import("./service.test.ts");
await import("./stream.test.ts");
await import("./approvals/approvals.test.ts");
await import("./approvals/undecided.test.ts");
await import("./approvals/release.test.ts");
await import("./audit/audit.test.ts");
await import("./asked-again.test.ts");
await import("./fan-out.test.ts");
