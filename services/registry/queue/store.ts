import { sql } from "kysely";
import type { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RegistryTables } from "../tables.ts";

/** What policy is asked again about a queued call, besides the call itself. */
export interface QueuedFacts {
  /** The caller's roles, then. */
  roles: readonly Role[];
  /** The longest it may run, in milliseconds. */
  timeoutMs: number;
}

/** One try to deliver a call. */
export interface Delivery extends QueuedFacts {
  /** Its number, from 1. */
  number: number;
}

/** Where the requests of calls that may be queued are kept. Every promise resolves when the change is on disk. */
export interface QueueStore {
  /** Writes down a call that may be queued. One that is known stays as it is. */
  note(callId: string, facts: QueuedFacts): Promise<void>;
  /**
   * The next try to deliver. Its number is on disk before policy is asked, so that a process that dies in between never
   * gets an old decision, whose grant has ended, for a new one. Undefined for a call that was not noted.
   */
  nextDelivery(callId: string): Promise<Delivery | undefined>;
  /** The call has ended. Need not be waited for. */
  forget(callId: string): void;
}

/** The table queued_calls. */
export function createQueueStore(db: Database<RegistryTables>, writes: GroupCommit<RegistryTables>): QueueStore {
  const insert = prepared((p: { callId: string; roles: string; timeoutMs: number }) =>
    db
      .insertInto("queued_calls")
      .values({ call_id: p.callId, delivery: 0, roles: p.roles, timeout_ms: p.timeoutMs })
      .onConflict((conflict) => conflict.column("call_id").doNothing()),
  );
  const next = prepared((p: { callId: string }) =>
    db
      .updateTable("queued_calls")
      .set({ delivery: sql<number>`delivery + 1` })
      .where("call_id", "=", p.callId)
      .returningAll(),
  );
  const remove = prepared((p: { callId: string }) => db.deleteFrom("queued_calls").where("call_id", "=", p.callId));
  return {
    async note(callId, { roles, timeoutMs }) {
      await writes.write((trx) => insert.run(trx, { callId, roles: JSON.stringify(roles), timeoutMs }));
    },
    async nextDelivery(callId) {
      const row = await writes.write((trx) => next.first(trx, { callId }));
      return row && { number: row.delivery, roles: JSON.parse(row.roles) as Role[], timeoutMs: row.timeout_ms };
    },
    forget: (callId) => writes.writeLazily(async (trx) => void (await remove.run(trx, { callId }))),
  };
}
