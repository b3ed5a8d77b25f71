import { create, toBinary } from "@bufbuild/protobuf";
import { ApprovalSpecSchema } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { keptArguments } from "../../../lib/tool/cut.ts";
import { NOT_SHOWN } from "../../../lib/tool/redact.ts";
import type { Judged } from "../decide/judge.ts";
import { grantTemplate } from "../grants/mint.ts";
import type { NewApproval } from "./approval-store.ts";
import { renderCard, renderWhole } from "./card.ts";
import { cardFactsOf } from "./card-facts.ts";

/** How long the arguments in a list of approvals may be, in UTF-16 code units. */
const LISTED = { texts: [4096, 200], total: 65_536 };

/** A call that is held. */
export interface HeldCall extends Judged {
  nowMs: number;
}

/** The row of a new approval: what is asked, the card, and what a permit will be made from. Pure. */
export function newApproval(id: string, held: HeldCall, holdRecord: AuditRecord): Omit<NewApproval, "change_idx"> {
  const { policy, nowMs } = held;
  const { spec, wholeDigest } = approvalSpec(held);
  return {
    id,
    create_ms: nowMs,
    expire_ms: nowMs + policy.approvalTtlMs,
    four_eyes: policy.fourEyes ? 1 : 0,
    policy_version: policy.version,
    spec: toBinary(ApprovalSpecSchema, spec),
    whole_digest: wholeDigest,
    principal_id: held.whole.principal.id,
    held_bytes: held.whole.request.arguments.length,
    template: toBinary(GrantSchema, grantTemplate(held.whole, held.argsDigest)),
    grant_ttl_ms: policy.grantTtlMs,
    hold_record: toBinary(AuditRecordSchema, holdRecord),
  };
}

/** What is asked of a human, and what they have to read before a yes. */
function approvalSpec(held: HeldCall) {
  const { whole, argsDigest, judgment } = held;
  const { request, principal, device, tool } = whole;
  const facts = cardFactsOf(held);
  const card = renderCard(facts);
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
    ruleIds: judgment.ruleIds,
    message: judgment.message,
    card: card.text,
    cardDigest: sha256Hex(card.text),
    isCut: card.isCut,
    devices: facts.devices.map((one) => ({ ...one })),
  });
  return { spec, wholeDigest: card.isCut ? sha256Hex(renderWhole(facts)) : "" };
}
