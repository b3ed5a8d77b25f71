import { create, toBinary } from "@bufbuild/protobuf";
import { ApprovalSpecSchema } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { keptArguments } from "../../../lib/tool/cut.ts";
import { NOT_SHOWN } from "../../../lib/tool/redact.ts";
import type { Evaluated } from "../evaluate/evaluate.ts";
import { grantTemplate } from "../grants/mint.ts";
import type { NewApproval } from "./approval-store.ts";
import { previewLine } from "./preview-lines.ts";
import { renderFull, renderSummary } from "./summary.ts";
import { summaryFactsOf } from "./summary-facts.ts";

/** How long the arguments in a list of approvals may be, in UTF-16 code units. */
const LISTED = { texts: [4096, 200], total: 65_536 };

export interface HeldCall extends Evaluated {
  nowMs: number;
}

/** The row of a new approval: what is asked, its summary, and what a grant will be made from. Pure. */
export function newApproval(id: string, held: HeldCall, holdRecord: AuditRecord): Omit<NewApproval, "change_idx"> {
  const { call, policy, nowMs } = held;
  const { spec, fullDigest } = approvalSpec(held);
  return {
    id,
    create_ms: nowMs,
    expire_ms: nowMs + policy.approvalTtlMs,
    four_eyes: policy.fourEyes ? 1 : 0,
    policy_version: policy.version,
    spec: toBinary(ApprovalSpecSchema, spec),
    full_digest: fullDigest,
    principal_id: call.principal.id,
    held_bytes: call.request.arguments.length,
    template: toBinary(GrantSchema, grantTemplate(call)),
    grant_ttl_ms: policy.grantTtlMs,
    hold_record: toBinary(AuditRecordSchema, holdRecord),
  };
}

/** What is asked of a person, and the digest of what they have to read before they approve. */
function approvalSpec({ call, evaluation }: HeldCall) {
  const { request, principal, device, tool, argsDigest } = call;
  const facts = summaryFactsOf(call, evaluation);
  const summary = renderSummary(facts);
  const spec = create(ApprovalSpecSchema, {
    callId: request.callId,
    deviceId: device.id,
    deviceName: device.name,
    tool: tool.name,
    arguments: facts.args ? keptArguments(facts.args, LISTED) : { note: NOT_SHOWN },
    argsDigest,
    principalId: principal.id,
    principalName: principal.name,
    purpose: request.purpose,
    ruleIds: evaluation.ruleIds,
    message: evaluation.message,
    summary: summary.text,
    summaryDigest: sha256Hex(summary.text),
    isAbridged: summary.isAbridged,
    devices: facts.devices.map((one) => ({ ...one })),
    preview: previewLine(call),
    previewDigest: call.preview?.digest ?? "",
  });
  return { spec, fullDigest: summary.isAbridged ? sha256Hex(renderFull(facts)) : "" };
}
