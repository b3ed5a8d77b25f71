import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ExecutionOutcome, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { verifyLog } from "../../lib/audit-verify/verify.ts";
import { type PostgresServer, startPostgresServer } from "../../testkit/postgres-server.ts";
import { type LedgerRow, openLog, readLedger, readMarks, readRecords } from "../chaos/evidence.ts";
import { describeEnd, lies } from "../chaos/truth.ts";
import { type KilledCall, killAtEachPoint } from "./kill-each.ts";
import { onDisk } from "./on-disk.ts";
import { startSubject } from "./subject.ts";

/** A start for each of some twenty points, on a busy machine too, in milliseconds. */
const TIMEOUT_MS = 600_000;

/** So many processes share the points: most of the time is their starts. */
const PROCESSES = 2;

let server: PostgresServer | undefined;
afterAll(() => server?.close());

test.each(["sqlite", "postgres"] as const)(
  "kill -9 at every commit and every sync of a call, on %s: no action without its record, none twice, every end true",
  async (kind) => {
    if (kind === "postgres") server = await startPostgresServer();
    const runs = Array.from({ length: PROCESSES }, (_, nth) => killThrough(nth, kind));
    // All of them, also where one has failed: the database's server ends with the test.
    await Promise.allSettled(runs);
    const calls = (await Promise.all(runs)).flat();
    // Seven commits: the call, its decision, its start and end in the ledger, its end, the end's record, and its
    // acknowledgement. On files the first two are one, as are others that come at the same time.
    expect(calls.length).toBeGreaterThanOrEqual(20);
    const ends = calls.map(({ shown }) => shown.status.state);
    expect(ends).toContain(CallState.SUCCEEDED);
    expect(ends).toContain(CallState.UNKNOWN);
  },
  TIMEOUT_MS,
);

/** What only the replica with a lease does, which is a killed process's for some seconds more. */
function isLeased(point: string): boolean {
  return /^postgres: .* (?:nodes|checkpoints|\w+_outbox),/.test(point);
}

/** Kills a process at its share of the points, and checks all that is left behind. */
async function killThrough(nth: number, kind: "sqlite" | "postgres"): Promise<KilledCall[]> {
  await using parts = new AsyncDisposableStack();
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-kill-")));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const url = kind === "postgres" ? await server?.newDatabase() : undefined;
  const subject = await startSubject(folder, url);
  parts.defer(() => subject.stop());
  const { dataDir, marks } = subject;
  const calls = await killAtEachPoint(subject, {
    name: `kill-${nth}`,
    take: (point, at) => at % PROCESSES === nth && !isLeased(point),
    onDisk: (id) => onDisk(id, dataDir, url),
  });
  const policyDatabase = url === undefined ? join(dataDir, "reeve.db") : `${url}?schema=policy`;
  await allRecorded(calls, policyDatabase);
  await subject.stop();

  const ran = await readMarks(marks);
  const ledger = await readLedger(join(dataDir, "device"));
  const records = await readRecords(policyDatabase);
  const found = calls.flatMap((call) => {
    const { id, answers, shown } = call;
    const [reported] = answers;
    const planned = { id, kind: "quick", way: "unary", as: "operator", device: "this", atMs: 0 } as const;
    const row = lostEnd(call, ledger.get(id));
    const evidence = { marks: ran.get(id) ?? 0, ledger: row, records: records.get(id) ?? [] };
    const about = lies({ planned: { ...planned, argv: [] }, reported, shown: [shown, ...answers], ...evidence });
    return [...about, ...unrecorded(call)].map((lie) => `killed at ${call.point}: ${lie}`);
  });
  expect(found).toEqual([]);
  await expectLogVerifies(policyDatabase, dataDir);
  return calls;
}

/** Waits until the log has the ends of all calls: those of a killed process are sent again once its lease is over. */
async function allRecorded(calls: readonly KilledCall[], policyDatabase: string): Promise<void> {
  await expect
    .poll(async () => {
      const records = await readRecords(policyDatabase);
      const open = calls.filter(({ id }) => !records.get(id)?.some(({ event }) => event.case === "outcome"));
      return open.map(({ id, point }) => `${id}, killed at ${point}`);
    })
    .toEqual([]);
}

/**
 * A device sends "finished" before it is synced, so that a cut of the power may leave INTERRUPTED in its ledger where the
 * registry has its receipt already: the ledger's row with what the receipt says instead, and every other row as it is.
 */
function lostEnd({ point, shown }: KilledCall, row: LedgerRow | undefined): LedgerRow | undefined {
  const { receipt } = shown.status;
  const isLost = !point.includes("after the commit") && row?.finished?.outcome === ExecutionOutcome.INTERRUPTED;
  if (!isLost || receipt === undefined || row?.finished === undefined) return row;
  const { outcome } = fromBinary(ReceiptSchema, receipt.statement);
  return { ...row, finished: { ...row.finished, outcome, receipt } };
}

/** What had run at the moment of the kill must have been on disk by then. */
function unrecorded({ id, hadRun, onDisk: found, shown }: KilledCall): string[] {
  if (!hadRun) return [];
  const missing = Object.entries(found).flatMap(([what, exists]) => (exists ? [] : [what]));
  return missing.map((what) => `${id} (${describeEnd(shown)}) had run, and no ${what} was on disk`);
}

async function expectLogVerifies(policyDatabase: string, dataDir: string): Promise<void> {
  const verifierKey = (await readFile(join(dataDir, "policy", "checkpoint.vkey"), "utf8")).trim();
  const { source, close } = await openLog(policyDatabase);
  const report = await verifyLog(source, { verifierKey });
  await close();
  expect(report.findings).toEqual([]);
}
