import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import type { AuditRecord as LogRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import {
  type ExecutionFinished,
  ExecutionFinishedSchema,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { openLogDatabase } from "../../lib/audit-verify/log-database.ts";
import { decodeRecord, type LogSource, openLogFile } from "../../lib/audit-verify/log-source.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { contextOf } from "../../services/device-agent/ledger/queries.ts";

/** What a device has written down about one call. */
export interface LedgerRow {
  /** "started", "finished", "refused" or "not_started". */
  state: string;
  /** What the device answers every question for it; undefined where it has not ended. */
  finished: ExecutionFinished | undefined;
}

/** How often each line is in a file that calls append to; empty where there is none. */
export async function readMarks(file: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const text = await readFile(file, "utf8").catch(() => "");
  for (const id of text.split("\n")) if (id !== "") counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The ledger of a device that is stopped, by call. */
export async function readLedger(stateDir: string): Promise<Map<string, LedgerRow>> {
  const sealer = sealerWith(await loadSealingKey(join(stateDir, "sealing.key")));
  const finishedOf = (callId: string, sealed: Uint8Array) =>
    fromBinary(ExecutionFinishedSchema, sealer.open(contextOf(callId), sealed));
  const db = openSqlite(`${pathToFileURL(join(stateDir, "ledger.db")).href}?mode=ro`);
  try {
    const all = "select call_id, state, finished from executions left join ends on ends.seq = executions.seq";
    const rows = db.run(all, []).rows as unknown as {
      call_id: string;
      state: string | null;
      finished: Uint8Array | null;
    }[];
    return new Map(
      rows.map(({ call_id, state, finished }) => [
        call_id,
        { state: state ?? "started", finished: finished === null ? undefined : finishedOf(call_id, finished) },
      ]),
    );
  } finally {
    db.close();
  }
}

/** The audit log in policy's database, by its path or its URL. */
export async function openLog(database: string): Promise<{ source: LogSource; close(): void | Promise<void> }> {
  if (database.startsWith("postgres:")) return openLogDatabase(database);
  const source = openLogFile(database);
  return { source, close: () => source.close() };
}

/** The audit log's records, by the call that they are about. @param database the path of policy's database, or its URL. */
export async function readRecords(database: string): Promise<Map<string, LogRecord[]>> {
  const { source, close } = await openLog(database);
  try {
    return await recordsByCall(source);
  } finally {
    await close();
  }
}

async function recordsByCall(source: LogSource): Promise<Map<string, LogRecord[]>> {
  const records = new Map<string, LogRecord[]>();
  for await (const { leaf } of source.entries()) {
    const record = decodeRecord(leaf);
    if (record === undefined) throw new Error("a record cannot be read");
    const ofCall = records.get(record.callId);
    if (ofCall === undefined) records.set(record.callId, [record]);
    else ofCall.push(record);
  }
  return records;
}
