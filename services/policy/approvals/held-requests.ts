import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DecisionRequest, DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../storage/tables.ts";

/**
 * The decision requests of held calls, to be evaluated again when these are released. Sealed: arguments may hold secrets,
 * which no approval shows and readers of the database must not see either.
 */
export interface HeldRequests {
  keep(on: QueryRunner, approvalId: string, request: DecisionRequest): Promise<void>;
  /** Undefined once it was deleted. Throws SealError where it cannot be opened. */
  find(on: QueryRunner, approvalId: string): Promise<DecisionRequest | undefined>;
  /** Deletes the request of an approval that will not be released any more. */
  delete(on: QueryRunner, approvalId: string): Promise<void>;
  /** Deletes the requests of a call that has ended. Costs nothing for a call that was not held. */
  deleteCall(on: QueryRunner, callId: string): Promise<void>;
}

/** Opens the table approval_requests. */
export async function openHeldRequests(db: PolicyDatabase, sealing: SealingKey): Promise<HeldRequests> {
  const rows = await db.selectFrom("approval_requests").select("call_id").execute();
  /** The calls that were held, and have not ended. What another replica holds later is swept: see keepApprovalRetention. */
  const held = new Set(rows.map((row) => row.call_id));
  const insert = prepared((p: { approvalId: string; callId: string; sealed: Uint8Array }) =>
    db.insertInto("approval_requests").values({ approval_id: p.approvalId, call_id: p.callId, sealed: p.sealed }),
  );
  const find = prepared((p: { approvalId: string }) =>
    db.selectFrom("approval_requests").select("sealed").where("approval_id", "=", p.approvalId),
  );
  const remove = prepared((p: { approvalId: string }) =>
    db.deleteFrom("approval_requests").where("approval_id", "=", p.approvalId),
  );
  const removeCall = prepared((p: { callId: string }) =>
    db.deleteFrom("approval_requests").where("call_id", "=", p.callId),
  );
  return {
    async keep(on, approvalId, request) {
      const sealed = seal(sealing, toBinary(DecisionRequestSchema, request), contextOf(approvalId));
      held.add(request.callId);
      await insert.run(on, { approvalId, callId: request.callId, sealed });
    },
    async find(on, approvalId) {
      const row = await find.first(on, { approvalId });
      return row && fromBinary(DecisionRequestSchema, unseal(sealing, row.sealed, contextOf(approvalId)));
    },
    delete: async (on, approvalId) => void (await remove.run(on, { approvalId })),
    async deleteCall(on, callId) {
      if (!held.has(callId)) return;
      await removeCall.run(on, { callId });
      held.delete(callId);
    },
  };
}

function contextOf(approvalId: string): string {
  return `approval-request/${approvalId}`;
}
