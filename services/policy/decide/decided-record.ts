import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { functionId } from "../../../lib/ids/function-id.ts";
import { deviceToolResource, fanOutToolResource } from "../audit/resources.ts";
import type { Judgment } from "./decide.ts";
import { asksAboutWhole } from "./question.ts";
import { sourceName, type WholeRequest } from "./request-facts.ts";

/** What a decision was. The words are those of the log. */
export type DecidedAs = "permit" | "hold" | "denial";

/** What a record of a decision says besides the request. */
export interface DecidedFacts {
  decision: DecidedAs;
  judgment: Pick<Judgment, "reason" | "ruleIds">;
  policyVersion: string;
  argsDigest: string;
  grantId?: string;
  approvalId?: string;
  nowMs: number;
}

/** The record of a decision about a call, or about a fan-out: its resource says so, and its device is the first. */
export function decidedRecord({ request, principal, device, tool }: WholeRequest, facts: DecidedFacts): AuditRecord {
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(facts.nowMs),
    actor: principal.id,
    callId: request.callId,
    resource: asksAboutWhole(request)
      ? fanOutToolResource(request.callId, tool.name)
      : deviceToolResource(device.id, tool.name),
    event: {
      case: "decided",
      value: {
        decision: facts.decision,
        reason: facts.judgment.reason,
        ruleIds: facts.judgment.ruleIds,
        policyVersion: facts.policyVersion,
        tool: tool.name,
        deviceId: device.id,
        argsDigest: facts.argsDigest,
        grantId: facts.grantId ?? "",
        approvalId: facts.approvalId ?? "",
        source: sourceName(request.source),
        manifestDigest: device.manifestDigest,
        functionId: functionId(tool.capability),
      },
    },
  });
}
