import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DecisionRequest, DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../tables.ts";

/**
 * What was asked about the calls that are held, to be judged again when they are released. Sealed: its arguments may hold
 * secrets, which an approval shows to nobody and the readers of the database must not see either.
 */
export interface RequestStore {
  keep(on: QueryRunner, approvalId: string, request: DecisionRequest): Promise<void>;
  /** Undefined for an approval whose request was not kept. Throws SealError where it cannot be opened. */
  find(on: QueryRunner, approvalId: string): Promise<DecisionRequest | undefined>;
  /** Forgets what will not be released any more. */
  forget(on: QueryRunner, approvalId: string): Promise<void>;
  /** Forgets what was asked about a call that has ended. Costs nothing for a call that was not held. */
  forgetCall(on: QueryRunner, callId: string): Promise<void>;
}

/** Opens the table approval_requests. */
export async function openRequestStore(db: PolicyDatabase, sealing: SealingKey): Promise<RequestStore> {
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
    forget: async (on, approvalId) => void (await remove.run(on, { approvalId })),
    async forgetCall(on, callId) {
      if (!held.has(callId)) return;
      await removeCall.run(on, { callId });
      held.delete(callId);
    },
  };
}

function contextOf(approvalId: string): string {
  return `approval-request/${approvalId}`;
}
