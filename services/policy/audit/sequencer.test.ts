import { afterAll, beforeAll, expect, it } from "vitest";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { keepLease, type Lease } from "../../../lib/store/lease.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { openKeyRing } from "../keys/key-ring.ts";
import { createKeyStore } from "../keys/key-store.ts";
import { recordedWrites } from "../storage/recorded-writes.ts";
import { openPolicyState } from "../storage/state-dir.ts";
import { type PolicyTables, policyMigrations } from "../storage/tables.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "../testing/test-policy.ts";
import { verifyDatabase } from "../testing/test-replicas.ts";
import { testRequest } from "../testing/test-requests.ts";
import { type Checkpointer, createCheckpointer } from "./checkpoints.ts";
import { createTreeBuilder, createTreeStore } from "./tree.ts";

let server: PostgresServer;
let policy: TestPolicy;
let db: Database<PolicyTables>;
const leases: Lease[] = [];

beforeAll(async () => {
  server = await startPostgresServer();
  policy = await startTestPolicy({ databaseUrl: await server.newDatabase(), checkpointDelayMs: 3_600_000 });
  db = await openDatabase<PolicyTables>({ url: policy.databaseUrl ?? "", migrations: policyMigrations });
});
afterAll(async () => {
  for (const lease of leases) await lease.close();
  await db.destroy();
  await policy.stop();
  await server.close();
  await removeTestFolders();
});

/** What a replica signs checkpoints with. */
async function checkpointer(sequencer: Lease): Promise<Checkpointer> {
  const { sealing } = await openPolicyState({ stateDir: policy.stateDir });
  const onError = (error: unknown): void => expect.fail(String(error));
  const tree = createTreeStore(db);
  return createCheckpointer({
    db,
    writes: recordedWrites(createGroupCommit(db, { lock: "reeve-policy-log" }), onError),
    tree,
    builder: createTreeBuilder(db, tree),
    keys: await openKeyRing(db, createKeyStore(db), sealing),
    sequencer,
    shared: true,
    delayMs: 3_600_000,
    now: Date.now,
    onError,
  });
}

function lease(holder: string, ttlMs: number, now?: () => number): Lease {
  const kept = keepLease({
    db,
    table: "policy_leases",
    name: "test-sequencer",
    holder,
    ttlMs,
    renewMs: now ? 3_600_000 : 50,
    ...(now && { now }),
  });
  leases.push(kept);
  return kept;
}

async function signed(): Promise<{ size: number; token: number }[]> {
  return db.selectFrom("checkpoints").select(["size", "token"]).where("token", ">", 0).orderBy("size").execute();
}

async function append(): Promise<number> {
  const { decision } = await policy.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
  return Number(decision?.auditIndex) + 1;
}

it("a replica that stood still signs nothing more once another has taken its place", async () => {
  // The clock of a process that stands still: it holds the lease for ever, as far as it knows.
  const paused = lease("rep-a", 400, () => 1);
  await eventually(() => expect(paused.held).toBe(true));
  const first = await checkpointer(paused);
  const size = await append();
  expect(Number((await first.covering(size))?.size)).toBe(size);

  const successor = lease("rep-b", 60_000);
  await eventually(() => expect(successor.held).toBe(true));
  const second = await checkpointer(successor);
  const later = await append();
  expect(paused.held).toBe(true);
  expect(Number((await first.covering(later))?.size)).toBe(size);
  expect(Number((await second.covering(later))?.size)).toBe(later);
  expect(Number((await first.covering(later))?.size)).toBe(later);

  const [one, two, ...more] = await signed();
  expect(more).toEqual([]);
  expect(two?.token).toBeGreaterThan(one?.token ?? Number.NaN);
  await first.close();
  await second.close();
  expect((await verifyDatabase(policy)).findings).toEqual([]);
});
