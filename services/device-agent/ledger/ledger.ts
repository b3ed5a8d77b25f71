import type { Sealer } from "../../../lib/identity/sealer.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import {
  checkSealingKey,
  contextOf,
  type EndColumns,
  type ExecutionRow,
  ledgerQueries,
  outputContextOf,
  PRUNE_ROWS,
} from "./queries.ts";
import { type EndState, type ExecutionState, type LedgerTables, ledgerMigrations } from "./schema.ts";
import { createSettled } from "./settled.ts";
import { shareWrites } from "./shared-write.ts";

/** What the ledger holds of one call. */
export interface Execution {
  callId: string;
  grantId: string | undefined;
  tool: string;
  /** SHA-256 of the canonical arguments, in hex. */
  argsDigest: string;
  state: ExecutionState;
  /** Undefined where nothing ran. In milliseconds since 1970. */
  startMs: number | undefined;
  /** The bytes of reeve.device.v1.Finished; undefined while it has no end. */
  finished: Uint8Array | undefined;
  /** Undefined while it has no end. In milliseconds since 1970. */
  endMs?: number | undefined;
  /** Whose call it is; undefined where that is not known. */
  principalId?: string | undefined;
  /** The bytes of reeve.device.v1.LedgerOutput; undefined where it printed nothing, or that is not known. */
  output?: Uint8Array | undefined;
}

/** A call that the ledger shall take on. */
export interface NewExecution {
  callId: string;
  /** Undefined for a call that is settled without a grant. */
  grantId: string | undefined;
  tool: string;
  argsDigest: string;
  /** Whose call it is; undefined where it is settled without a grant. */
  principalId?: string | undefined;
}

export interface ExecutionEnd {
  callId: string;
  state: EndState;
  outcome: number;
  reason: number;
  endMs: number;
  /** The bytes of reeve.device.v1.Finished. */
  finished: Uint8Array;
  /** The bytes of reeve.device.v1.LedgerOutput. Default none: it printed nothing. */
  output?: Uint8Array | undefined;
}

/** What became of an attempt to take a call on. */
export type TakeResult =
  /** It is on disk. */
  | { kind: "taken" }
  /** The call id is known: nothing was written. */
  | { kind: "known"; execution: Execution }
  /** Another call has used the grant: nothing was written. */
  | { kind: "replayed" };

/**
 * The device's write-ahead record of what it ran. Each promise resolves after the commit is synced to disk, but that of
 * `finish`, which resolves after the commit: a power cut right then leaves "started", and so INTERRUPTED. The unique
 * call id and grant id are what makes a call run at most once, also across a crash.
 */
export interface Ledger {
  /** Writes that a call is about to run. Only "taken" lets it. */
  begin(execution: NewExecution, startMs: number): Promise<TakeResult>;
  /** Writes the end of a call that was begun. Resolves with false, and writes nothing, where it has an end already. */
  finish(end: ExecutionEnd): Promise<boolean>;
  /** Writes a call that ended without having been begun, and uses up its grant. */
  record(execution: NewExecution, end: ExecutionEnd): Promise<TakeResult>;
  /** What is known of a call. */
  find(callId: string): Promise<Execution | undefined>;
  /** The newest calls of a principal, or of all, but for those of the tools that look after calls. */
  newest(principalId: string | undefined, limit: number): Promise<Execution[]>;
  /** Calls that were begun and have no end. At process start: the interrupted ones. */
  unended(): Promise<Execution[]>;
  /** Forgets calls that ended before that time. Resolves with their number. */
  prune(beforeMs: number): Promise<number>;
  /** Waits for what is being written, and closes the database. */
  close(): Promise<void>;
}

/**
 * Opens the ledger in a SQLite file, which is made where it is missing. Ends, which have the tools' output, lie in it sealed.
 * Rejects with SealError where they were sealed with
 * another key.
 */
export async function openLedger(path: string, sealer: Sealer): Promise<Ledger> {
  const db: Database<LedgerTables> = await openDatabase({ path, migrations: ledgerMigrations });
  const writes = createGroupCommit(db);
  const writeRow = shareWrites(writes.write);
  const writeEnd = shareWrites(writes.writeThenSync);
  const query = ledgerQueries(db);
  await checkSealingKey(db, sealer).catch(async (error: unknown) => {
    await writes.close();
    await db.destroy();
    throw error;
  });

  const [last, unended] = [await query.last.first(db, {}), await query.unended.all(db, {})];
  const settled = createSettled(last?.seq ?? 0, unended);

  const find = async (on: QueryRunner, callId: string): Promise<Execution | undefined> => {
    const row = await query.find.first(on, { callId });
    return row && executionOf(row, sealer);
  };
  const take = async (
    { callId, grantId, tool, argsDigest, principalId }: NewExecution,
    { startMs, end }: { startMs: number; end?: undefined } | { startMs?: undefined; end: ExecutionEnd },
  ): Promise<TakeResult> => {
    const seq = settled.next();
    const columns = end && endColumns(end, sealer);
    const row = {
      seq,
      call_id: callId,
      grant_id: grantId ?? null,
      tool,
      args_digest: argsDigest,
      start_ms: startMs ?? null,
      principal_id: principalId ?? null,
    };
    const result = await writeRow(async (trx): Promise<TakeResult> => {
      if ((await query.insert.run(trx, row)) === 1) {
        if (columns !== undefined) await query.end.run(trx, { call_id: callId, ...columns });
        return { kind: "taken" };
      }
      const execution = await find(trx, callId);
      return execution === undefined ? { kind: "replayed" } : { kind: "known", execution };
    });
    if (result.kind === "taken" && end === undefined) settled.taken(callId, seq);
    else settled.notTaken(seq);
    return result;
  };

  return {
    begin: (execution, startMs) => take(execution, { startMs }),
    record: (execution, end) => take(execution, { end }),
    async finish(end) {
      const row = { call_id: end.callId, ...endColumns(end, sealer) };
      const due = settled.due();
      const isWritten = await writeEnd(async (trx) => {
        if (due !== undefined) await query.noteSettled.run(trx, { seq: due });
        return (await query.end.run(trx, row)) === 1;
      });
      settled.ended(end.callId);
      return isWritten;
    },
    find: (callId) => find(db, callId),
    async newest(principalId, limit) {
      const rows = await query.newest.all(db, { principalId: principalId ?? "", limit });
      return rows.map((row) => executionOf(row, sealer));
    },
    async unended() {
      return (await query.unended.all(db, {})).map((row) => executionOf(row, sealer));
    },
    async prune(beforeMs) {
      for (let total = 0; ; ) {
        const pruned = await writes.write(async (trx) => {
          await query.pruneExecutions.run(trx, { beforeMs });
          return query.pruneEnds.run(trx, { beforeMs });
        });
        total += pruned;
        if (pruned < PRUNE_ROWS) return total;
      }
    },
    async close() {
      await writes.close();
      await db.destroy();
    },
  };
}

function endColumns(end: ExecutionEnd, sealer: Sealer): EndColumns {
  const { callId, state, outcome, reason, endMs, finished, output } = end;
  return {
    state,
    outcome,
    reason,
    end_ms: endMs,
    finished: sealer.seal(contextOf(callId), finished),
    output: output === undefined ? null : sealer.seal(outputContextOf(callId), output),
  };
}

function executionOf(row: ExecutionRow, sealer: Sealer): Execution {
  return {
    callId: row.call_id,
    grantId: row.grant_id ?? undefined,
    tool: row.tool,
    argsDigest: row.args_digest,
    state: row.state ?? "started",
    startMs: row.start_ms ?? undefined,
    finished: row.finished === null ? undefined : sealer.open(contextOf(row.call_id), row.finished),
    endMs: row.end_ms ?? undefined,
    principalId: row.principal_id ?? undefined,
    output: row.output === null ? undefined : sealer.open(outputContextOf(row.call_id), row.output),
  };
}
