import type { JsonObject } from "@bufbuild/protobuf";
import { sql } from "kysely";
import type { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RegistryTables } from "../tables.ts";
import { type Bodies, skeletonOf } from "./bodies.ts";
import { callRows, stateRow } from "./call-rows.ts";
import type { GovernedCall } from "./governed-call.ts";
import { createLastingStates } from "./lasting-states.ts";
import { isEnd } from "./lifecycle.ts";
import { argumentsIn, callIn, listedCallIn, STORED_COLUMNS, type StoredRow, shownIn } from "./stored-row.ts";

/** A call as it is stored. */
export interface StoredCall {
  call: GovernedCall;
  /** The canonical arguments; empty once it has ended, where they had secrets. */
  args: Uint8Array;
  /** The replica that owns it. */
  owner: string;
  /** Its cancellation was requested. */
  cancelWanted: boolean;
}

/** The end of a call that the audit log has not acknowledged yet. */
export interface PendingOutcome {
  callId: string;
  /** The exact bytes of a reeve.audit.v1.CallOutcome, the same at every try. */
  outcome: Uint8Array;
}

/** Which calls to list, newest first. */
export interface CallFilter {
  state?: CallState;
  deviceId?: string;
  tool?: string;
  principalId?: string;
  /** Only calls stored before this row. */
  before?: number;
  limit: number;
}

/** What a call is asked with, as it is written down. */
export interface NewArguments {
  /** The canonical arguments. */
  args: Uint8Array;
  /** The same without secrets, where they have some; what is kept after the end. Default: there are none. */
  shown?: Uint8Array | undefined;
}

/**
 * Where calls are kept: the skeleton in clear, what callers and tools wrote sealed. Every promise resolves when the change is
 * on disk. Reading throws SealError where the bodies cannot be opened.
 */
export interface CallStore {
  /**
   * Writes a new call down. False where the id is taken: nothing was written.
   *
   * @param decided is settled when policy has answered about the call, or has failed to; ask it after this. Where it writes to
   *   the same database, the call waits for its decision's commit until then, and 50 ms at most. Default: it waits for
   *   nothing.
   */
  insert(call: GovernedCall, asked: NewArguments, decided?: Promise<unknown>): Promise<boolean>;
  /** Keeps a call's new state. False where another replica owns the call now, or has ended it. */
  save(call: GovernedCall): Promise<boolean>;
  /** Keeps a state if it lasts. A restart finds it out again, so that nothing waits for the write. */
  saveLazily(call: GovernedCall): void;
  /**
   * Keeps a call's end, its outcome for the audit log and its events, in one transaction, which also deletes the secrets
   * among its arguments. False, and nothing is kept, where another replica owns the call now, or has ended it.
   */
  finish(call: GovernedCall, outcome: Uint8Array | undefined, events: readonly EventEnvelope[]): Promise<boolean>;
  /** A call by id. */
  get(id: string): Promise<StoredCall | undefined>;
  /** A call's arguments as they may be shown; undefined where they are not kept. */
  shownArguments(id: string): Promise<JsonObject | undefined>;
  /**
   * Calls, newest first, each with its row, with short arguments and without output. Fewer than asked for where the arguments
   * are large: `more` says whether there are any after them.
   */
  list(filter: CallFilter): Promise<{ calls: { row: number; call: GovernedCall }[]; more: boolean }>;
  /** The audit log has the outcome. */
  outcomeRecorded(callId: string, auditIndex: bigint): void;
}

/** How many bytes of sealed bodies a list reads. */
const LIST_BYTES = 8 * 1024 * 1024;

/** What a store of calls is made with. */
export interface CallStoreOptions {
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  outbox: Outbox;
  bodies: Bodies;
  /** The replica that owns what is inserted here. Default none. */
  owner?: string;
  /** Whether policy's decisions are in the same database and go through the same `writes`. Default false. */
  sharesWithPolicy?: boolean;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** Calls in a database. */
export function createCallStore(options: CallStoreOptions): CallStore {
  const { db, writes, outbox, bodies, owner = "", sharesWithPolicy = false, now = Date.now } = options;
  const rows = callRows(db, outbox, owner);
  const saveLazily = createLastingStates((call) =>
    // A call that has ended meanwhile needs no write.
    writes.writeRowLazily(rows.save, {
      id: call.id,
      read: () => (isEnd(call.status.state) ? undefined : stateRow(call)),
    }),
  );
  const byId = prepared((p: { id: string }) => db.selectFrom("calls").select(STORED_COLUMNS).where("id", "=", p.id));

  return {
    insert: async (call, { args, shown }, decided) => {
      const { purpose } = call.spec;
      const row = {
        id: call.id,
        device_id: call.spec.deviceId,
        tool: call.spec.tool,
        principal_id: call.spec.principalId,
        state: call.status.state,
        args: bodies.sealAsked(call.id, { args, purpose }),
        shown: shown === undefined ? null : bodies.sealShown(call.id, { args: shown, purpose }),
        call: skeletonOf(call),
      };
      const waits = sharesWithPolicy && decided !== undefined;
      return waits ? writes.writeRowAlong(rows.insert, row, decided) : writes.writeRow(rows.insert, row);
    },
    save: async (call) => {
      const row = stateRow(call);
      return writes.writeRow(rows.save, { id: call.id, read: () => row });
    },
    saveLazily,
    finish: async (call, outcome, events) => {
      const end = {
        ...stateRow(call),
        result: bodies.sealResult(call.id, call.status),
        outcome: outcome ?? null,
        pending: outcome === undefined ? 0 : 1,
        // Until the audit log has the end, nothing is deleted.
        kept_from_ms: outcome === undefined ? now() : null,
      };
      return writes.writeRow(rows.finish, { end, events });
    },
    get: async (id) => {
      const row = await byId.first(db, { id });
      return row && storedCallIn(row, bodies);
    },
    shownArguments: async (id) => {
      const row = await byId.first(db, { id });
      return row && shownIn(row, bodies)?.arguments;
    },
    list: async (filter) => {
      const found = await sizesOf(db, filter);
      const fitting = withinBytes(found.slice(0, filter.limit));
      if (fitting.length === 0) return { calls: [], more: false };
      const rows = await db
        .selectFrom("calls")
        .select([...STORED_COLUMNS, "row"])
        .where(
          "row",
          "in",
          fitting.map(({ row }) => row),
        )
        .orderBy("row", "desc")
        .execute();
      const calls = rows.map((row) => ({ row: row.row, call: listedCallIn(row, bodies) }));
      return { calls, more: found.length > fitting.length };
    },
    outcomeRecorded: (callId, auditIndex) => {
      writes.writeRowLazily(rows.acknowledge, { id: callId, idx: Number(auditIndex), now_ms: now() });
    },
  };
}

/** A stored call, as the replica that resumes it needs it. Throws SealError. */
export function storedCallIn(row: StoredRow, bodies: Bodies): StoredCall {
  const { owner, cancel_wanted } = row;
  return { call: callIn(row, bodies), args: argumentsIn(row, bodies), owner, cancelWanted: cancel_wanted === 1 };
}

/** The rows that a filter finds, one more than its limit, and how many bytes of bodies reading each takes. */
function sizesOf(db: Database<RegistryTables>, filter: CallFilter): Promise<{ row: number; bytes: number }[]> {
  let query = db
    .selectFrom("calls")
    .select(["row", sql<number>`case when shown is null then length(args) else length(shown) end`.as("bytes")])
    .orderBy("row", "desc");
  if (filter.state !== undefined) query = query.where("state", "=", filter.state);
  if (filter.deviceId !== undefined) query = query.where("device_id", "=", filter.deviceId);
  if (filter.tool !== undefined) query = query.where("tool", "=", filter.tool);
  if (filter.principalId !== undefined) query = query.where("principal_id", "=", filter.principalId);
  if (filter.before !== undefined) query = query.where("row", "<", filter.before);
  return query.limit(filter.limit + 1).execute();
}

function withinBytes<R extends { bytes: number }>(rows: readonly R[]): R[] {
  let bytes = 0;
  return rows.filter((row, index) => {
    bytes += row.bytes;
    return index === 0 || bytes <= LIST_BYTES;
  });
}
