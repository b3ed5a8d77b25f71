import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { RowKind } from "../../../lib/store/rows.ts";
import type { RegistryTables } from "../tables.ts";
import { skeletonOf } from "./bodies.ts";
import {
  type AcknowledgedRow,
  callStatements,
  type EndRow,
  type InsertRow,
  manyCallsStatements,
  type StateRow,
} from "./call-statements.ts";
import type { GovernedCall } from "./governed-call.ts";
import { storedBefore } from "./lifecycle.ts";

type Kind<Row, R> = RowKind<RegistryTables, Row, R>;

/** How the table calls is written. A result is whether the row existed. */
export interface CallRows {
  insert: Kind<InsertRow, boolean>;
  /** Read when it is written, not when it was asked for; undefined where there is nothing to write any more. */
  save: Kind<{ id: string; read(): StateRow | undefined }, boolean>;
  /** With the events, where the row was written. */
  finish: Kind<{ end: EndRow; events: readonly EventEnvelope[] }, boolean>;
  acknowledge: Kind<AcknowledgedRow, boolean>;
}

/** What a call's state is written as. */
export function stateRow(call: GovernedCall): StateRow {
  const before = storedBefore(call.status.state).reduce<number>((bits, from) => bits | (1 << from), 0);
  return { id: call.id, state: call.status.state, call: skeletonOf(call), before };
}

/** How large the columns of a row are that may be large. */
const length = (...columns: readonly (Uint8Array | null)[]) =>
  columns.reduce((sum, column) => sum + (column?.length ?? 0), 0);

/** A skeleton's size at most, about. */
const SKELETON_BYTES = 8 * 1024;

/** The rows of one replica's calls. */
export function callRows(db: Database<RegistryTables>, outbox: Outbox, owner: string): CallRows {
  const statements = { ...callStatements(db, owner), many: manyCallsStatements(db, owner) };
  const { insert, update, finish, acknowledge, many } = statements;
  return {
    insert: {
      key: ({ id }) => id,
      bytes: ({ args, shown }) => length(args, shown) + SKELETON_BYTES,
      one: async (trx, row) => (await insert.run(trx, row)) === 1,
      many: async (trx, rows) => foundIn(await many.insert(trx, rows), rows),
    },
    save: {
      key: ({ id }) => id,
      bytes: () => SKELETON_BYTES,
      one: async (trx, { read }) => {
        const row = read();
        return row !== undefined && (await update.run(trx, row)) === 1;
      },
      many: async (trx, rows) => {
        const left = rows.flatMap(({ read }) => read() ?? []);
        return foundIn(await many.update(trx, left), rows);
      },
    },
    finish: {
      key: ({ end }) => end.id,
      bytes: ({ end }) => length(end.call, end.result, end.outcome),
      one: async (trx, { end, events }) => {
        if ((await finish.run(trx, { ...end, nothing: NOTHING })) === 0) return false;
        if (events.length > 0) await outbox.enqueue(trx, events);
        return true;
      },
      many: async (trx, rows) => {
        const ends = rows.map(({ end }) => end);
        const found = foundIn(await many.finish(trx, ends), ends);
        const events = rows.flatMap((row, index) => (found[index] === true ? row.events : []));
        if (events.length > 0) await outbox.enqueue(trx, events);
        return found;
      },
    },
    acknowledge: {
      key: ({ id }) => id,
      bytes: () => 0,
      one: async (trx, row) => (await acknowledge.run(trx, row)) === 1,
      many: async (trx, rows) => foundIn(await many.acknowledge(trx, rows), rows),
    },
  };
}

const NOTHING = new Uint8Array();

function foundIn(written: readonly { id: string }[], rows: readonly { id: string }[]): boolean[] {
  const ids = new Set(written.map(({ id }) => id));
  return rows.map(({ id }) => ids.has(id));
}
