import { fromBinary } from "@bufbuild/protobuf";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import { specOf } from "../approvals/approval-message.ts";
import type { ApprovalRow } from "../approvals/approval-store.ts";
import { voidnessOf } from "../approvals/given.ts";
import type { Release } from "../grants/mint.ts";
import type { Judged } from "./judge.ts";

/** What of a held question says whether an approval covers it. */
export type HeldQuestion = Pick<Judged, "whole" | "argsDigest" | "policy">;

/**
 * Who released a call that the rules hold, where an approval that is named covers it; undefined where a human has to be
 * asked anew. It covers what its card showed and nothing else: the same principal, tool and arguments, and either this very
 * call on its device, or the one call that its fan-out makes on one of its devices. It must be approved, not too old, and
 * by somebody whom the policy of today lets approve. Pure.
 */
export function coverOf(row: ApprovalRow | undefined, held: HeldQuestion, nowMs: number): Release | undefined {
  if (row?.state !== ApprovalState.APPROVED) return undefined;
  const { whole, argsDigest, policy } = held;
  const { request, principal, tool } = whole;
  const spec = specOf(row);
  const template = fromBinary(GrantSchema, row.template);
  const sameWork =
    spec.principalId === principal.id &&
    spec.tool === tool.name &&
    spec.argsDigest === argsDigest &&
    template.schemaDigest === tool.schemaDigest &&
    template.timeoutMs === request.timeoutMs;
  const counts = voidnessOf(row, principal.id, policy, nowMs) === undefined;
  if (!sameWork || !counts || !isOfThisCall(spec, whole)) return undefined;
  return { approvalId: row.id, approverIds: [row.decided_by] };
}

type Spec = ReturnType<typeof specOf>;

function isOfThisCall(spec: Spec, { request: { callId }, device }: HeldQuestion["whole"]): boolean {
  if (spec.devices.length === 0) return spec.callId === callId && spec.deviceId === device.id;
  return callId === fanOutCallId(spec.callId, device.id) && spec.devices.some(({ id }) => id === device.id);
}
