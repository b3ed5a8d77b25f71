import { afterAll, beforeAll } from "vitest";
import { type PostgresServer, startPostgresServer } from "../../test/helpers/postgres-server.ts";
import { usePostgres } from "./testing/test-policy.ts";

// The tests of these files again, as they stand, with a PostgreSQL database for each state folder.
let server: PostgresServer;

usePostgres(() => server.newDatabase());
beforeAll(async () => {
  server = await startPostgresServer();
});
afterAll(async () => server.close());

await import("./service.test.ts");
await import("./link.test.ts");
await import("./approvals/approvals.test.ts");
await import("./audit/audit.test.ts");
await import("./decide/asked-again.test.ts");
await import("./decide/fan-out.test.ts");
