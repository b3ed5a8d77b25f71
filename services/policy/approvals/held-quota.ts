import { policySettings } from "../../../gen/settings/settings.ts";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { quotaFactor } from "../../../lib/auth/quota-factor.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { NotHoldable } from "./holdable.ts";

/** How much of one agent's may wait for a person. Principals with the role operator may have eight times as much. */
export interface HeldLimits {
  /** Calls and fan-outs. Default 100. */
  heldCalls: number;
  /** Bytes of their arguments. Default 4 MiB. */
  heldBytes: number;
}

/** What an agent may have waiting where the configuration states nothing else. */
export const DEFAULT_HELD_LIMITS: HeldLimits = {
  heldCalls: policySettings.agentHeldCalls.default,
  heldBytes: policySettings.agentHeldBytes.default,
};

/** Counts what waits for a person. */
export interface HeldQuota {
  /**
   * Why one more call of a principal cannot wait for a person; undefined where it can. To be asked within the transaction
   * that would hold it. A call that waited for its device is no more than it was before.
   */
  over(on: QueryRunner, call: ValidatedRequest): Promise<NotHoldable | undefined>;
}

/** Counts in the database, and so for all replicas. It costs as many index entries as the limit allows. */
export function createHeldQuota(db: PolicyDatabase, limits: HeldLimits): HeldQuota {
  const waiting = prepared((p: { principalId: string }) =>
    db
      .selectFrom("approvals")
      .select(({ fn }) => [fn.countAll().as("calls"), fn.sum("held_bytes").as("bytes")])
      .where("principal_id", "=", p.principalId)
      .where("state", "=", ApprovalState.PENDING),
  );
  return {
    async over(on, { request, principal }) {
      if (request.delivery > 0) return undefined;
      const factor = quotaFactor(principal);
      const row = await waiting.first(on, { principalId: principal.id });
      if (Number(row?.calls ?? 0) + 1 > limits.heldCalls * factor) return over("held_calls", limits.heldCalls * factor);
      const bytes = Number(row?.bytes ?? 0) + request.arguments.length;
      return bytes > limits.heldBytes * factor ? over("held_bytes", limits.heldBytes * factor) : undefined;
    },
  };
}

function over(quota: string, limit: number): NotHoldable {
  const message = `It would wait for a person, and one principal may have ${quota} of ${limit} waiting; wait for decisions, or cancel some calls.`;
  return { reason: ErrorReason.QUOTA_EXCEEDED, metadata: { quota, limit: String(limit) }, message };
}
