import type { JsonObject } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { CompleteCall } from "../../client/complete-call.ts";
import { CallStateSchema, DecisionKindSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { IngressSchema } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { SandboxLevel, SandboxLevelSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { ExecutionOutcomeSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { reasonName } from "../../lib/fault/fault.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName, enumNames } from "../print/enum-name.ts";
import { namedId, nameOr } from "../print/named-id.ts";
import { readable } from "../print/readable.ts";
import type { Style } from "../print/style.ts";
import { listTable, type TableParts } from "../print/table.ts";
import { ageText, durationText, timeAndAge, timeText } from "../print/time.ts";
import { callLine } from "./call-line.ts";
import { receiptOf } from "./show-receipt.ts";

/** Calls as a table. */
export function callsTable(calls: readonly CompleteCall[], context: CommandContext, parts: TableParts = {}): string {
  const columns = ["STATE", "WHAT", "DEVICE", "BY", "ASKED", "TOOK", "WHY", "CALL"];
  const rows = calls.map((call) => [
    enumName(CallStateSchema, call.status.state),
    callLine(call.spec.tool, call.spec.arguments),
    nameOr(call.spec.deviceName, call.spec.deviceId),
    nameOr(call.spec.principalName, call.spec.principalId),
    ageText(call.createTime, context.now()),
    tookText(call),
    call.status.error === undefined ? "" : reasonName(call.status.error.reason),
    call.id,
  ]);
  return listTable(columns, rows, context, { keep: ["CALL"], colors: { STATE: STATE_COLORS }, parts });
}

/** One call in full. */
export function describeCall(call: CompleteCall, style: Style, now: number): string {
  const facts: JsonObject = {
    call: call.id,
    state: enumName(CallStateSchema, call.status.state),
    tool: call.spec.tool,
    device: namedId(call.spec.deviceName, call.spec.deviceId),
    "asked by": `${namedId(call.spec.principalName, call.spec.principalId)} by ${enumName(IngressSchema, call.spec.ingress)}`,
    "says it is": call.spec.client,
    asked: timeAndAge(call.createTime, now),
    ended: timeAndAge(call.status.endTime, now),
    took: tookText(call),
    purpose: call.spec.purpose,
    decision: decisionText(call),
    grant: call.status.grantId,
    approval: approvalText(call),
    "fan-out": call.spec.fanOutId,
    "queued until": timeAndAge(call.spec.queueExpireTime, now),
    ...(call.spec.arguments === undefined ? {} : { arguments: call.spec.arguments }),
    "arguments digest": call.spec.argsDigest,
    deleted:
      call.status.bodiesDeleteTime === undefined
        ? ""
        : `arguments, output and error text, at ${timeText(call.status.bodiesDeleteTime)}, as the retention says`,
    error: errorLine(call),
    receipt: receiptText(call),
    "end in the log at": call.status.outcomeAuditIndex === undefined ? "" : String(call.status.outcomeAuditIndex),
    ...(call.status.output === undefined ? {} : { output: call.status.output }),
  };
  return readable(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== "")), style);
}

function decisionText({ status: { decision } }: CompleteCall): string {
  if (decision === undefined) return "";
  const rules = decision.ruleIds.length > 0 ? ` by ${decision.ruleIds.join(", ")}` : "";
  return `${enumName(DecisionKindSchema, decision.kind).toLowerCase()}${rules}, policy ${decision.policyVersion}, in the log at ${decision.auditIndex}`;
}

function approvalText({ status: { approval } }: CompleteCall): string {
  if (approval === undefined) return "";
  if (approval.decidedBy === "") return approval.id;
  return `${approval.id}, decided by ${namedId(approval.decidedByName, approval.decidedBy)} at ${timeText(approval.decideTime)}`;
}

function errorLine({ status: { error, errorMessage } }: CompleteCall): string {
  return error === undefined ? errorMessage : `${reasonName(error.reason)}: ${errorMessage}`;
}

function receiptText({ status: { receipt } }: CompleteCall): string {
  const said = receiptOf(receipt);
  if (said === undefined) return receipt === undefined ? "" : "cannot be read";
  const ran = said.sandbox !== SandboxLevel.UNSPECIFIED;
  const sandbox = ran ? enumName(SandboxLevelSchema, said.sandbox) : "not used (no program ran)";
  return `${enumName(ExecutionOutcomeSchema, said.outcome)} at ${timeText(said.endTime)}, sandbox ${sandbox}, signed by ${said.deviceId}`;
}

function tookText({ createTime, status: { endTime } }: CompleteCall): string {
  if (createTime === undefined || endTime === undefined) return "";
  return durationText(timestampMs(endTime) - timestampMs(createTime));
}

/** Green for what went well, yellow for what waits or runs, red for the rest. */
const STATE_COLORS = Object.fromEntries(
  enumNames(CallStateSchema).map((name) => {
    const waits = ["received", "held", "queued", "permitted", "dispatched"].includes(name);
    return [name, name === "succeeded" ? "green" : waits ? "yellow" : "red"] as const;
  }),
);
