import { create, toBinary } from "@bufbuild/protobuf";
import { type Record, RecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ApprovalSpecSchema } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { roleName } from "../../../lib/auth/roles.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { Judged } from "../decide/judge.ts";
import { sourceName } from "../decide/request-facts.ts";
import { grantTemplate } from "../grants/mint.ts";
import type { NewApproval } from "./approval-store.ts";
import { renderCard } from "./card.ts";
import { keptArguments } from "./cut.ts";
import { NOT_SHOWN, redactSecretFields } from "./redact.ts";

/** A call that is held. */
export interface HeldCall extends Judged {
  nowMs: number;
}

/** The row of a new approval: what is asked, the card, and what a permit will be made from. Pure. */
export function newApproval(id: string, held: HeldCall, holdRecord: Record): Omit<NewApproval, "change_idx"> {
  const { policy, nowMs } = held;
  return {
    id,
    create_ms: nowMs,
    expire_ms: nowMs + policy.approvalTtlMs,
    four_eyes: policy.fourEyes ? 1 : 0,
    policy_version: policy.version,
    spec: toBinary(ApprovalSpecSchema, approvalSpec(held)),
    template: toBinary(GrantSchema, grantTemplate(held.whole, held.argsDigest)),
    grant_ttl_ms: policy.grantTtlMs,
    hold_record: toBinary(RecordSchema, holdRecord),
  };
}

function approvalSpec({ whole, args, argsDigest, judgement, inputSchema }: HeldCall) {
  const { request, principal, device, tool } = whole;
  const shown = inputSchema && redactSecretFields(args, inputSchema);
  const devices = request.devices.map(({ id, name }) => ({ id, name }));
  const card = renderCard({
    deviceName: device.name,
    deviceId: device.id,
    devices,
    tool: tool.name,
    capability: tool.capability,
    principalId: principal.id,
    roles: principal.roles.map((role) => roleName(role) ?? "unknown"),
    source: sourceName(request.source),
    purpose: request.purpose,
    message: judgement.message,
    ruleIds: judgement.ruleIds,
    args: shown,
    argsDigest,
    timeoutMs: request.timeoutMs,
  });
  return create(ApprovalSpecSchema, {
    callId: request.callId,
    deviceId: device.id,
    deviceName: device.name,
    tool: tool.name,
    arguments: shown ? keptArguments(shown) : { note: NOT_SHOWN },
    argsDigest,
    principalId: principal.id,
    purpose: request.purpose,
    ruleIds: judgement.ruleIds,
    message: judgement.message,
    card,
    cardDigest: sha256Hex(card),
    devices,
  });
}
