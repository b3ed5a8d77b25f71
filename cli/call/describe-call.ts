import type { JsonObject } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, CallStateSchema, DecisionKindSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { IngressSchema } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { SandboxLevelSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
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
export function callsTable(calls: readonly Call[], context: CommandContext, parts: TableParts = {}): string {
  const columns = ["STATE", "WHAT", "DEVICE", "BY", "ASKED", "TOOK", "WHY", "CALL"];
  const rows = calls.map((call) => [
    enumName(CallStateSchema, call.state),
    callLine(call.tool, call.arguments),
    nameOr(call.deviceName, call.deviceId),
    nameOr(call.principalName, call.principalId),
    ageText(call.createTime, context.now()),
    tookText(call),
    call.error === undefined ? "" : reasonName(call.error.reason),
    call.id,
  ]);
  return listTable(columns, rows, context, { keep: ["CALL"], colors: { STATE: STATE_COLORS }, parts });
}

/** One call in full. */
export function describeCall(call: Call, style: Style, now: number): string {
  const facts: JsonObject = {
    call: call.id,
    state: enumName(CallStateSchema, call.state),
    tool: call.tool,
    device: namedId(call.deviceName, call.deviceId),
    "asked by": `${namedId(call.principalName, call.principalId)} by ${enumName(IngressSchema, call.ingress)}`,
    "says it is": call.client,
    asked: timeAndAge(call.createTime, now),
    ended: timeAndAge(call.endTime, now),
    took: tookText(call),
    purpose: call.purpose,
    decision: decisionText(call),
    grant: call.grantId,
    approval: call.approvalId,
    "fan-out": call.fanOutId,
    "queued until": timeAndAge(call.queueExpireTime, now),
    ...(call.arguments === undefined ? {} : { arguments: call.arguments }),
    "arguments digest": call.argsDigest,
    deleted:
      call.bodiesDeleteTime === undefined
        ? ""
        : `arguments, output and error text, at ${timeText(call.bodiesDeleteTime)}, as the retention says`,
    error: errorLine(call),
    receipt: receiptText(call),
    "end in the log at": call.outcomeAuditIndex === undefined ? "" : String(call.outcomeAuditIndex),
    ...(call.output === undefined ? {} : { output: call.output }),
  };
  return readable(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== "")), style);
}

function decisionText({ decision }: Call): string {
  if (decision === undefined) return "";
  const rules = decision.ruleIds.length > 0 ? ` by ${decision.ruleIds.join(", ")}` : "";
  return `${enumName(DecisionKindSchema, decision.kind).toLowerCase()}${rules}, policy ${decision.policyVersion}, in the log at ${decision.auditIndex}`;
}

function errorLine({ error, errorMessage }: Call): string {
  return error === undefined ? errorMessage : `${reasonName(error.reason)}: ${errorMessage}`;
}

function receiptText({ receipt }: Call): string {
  const said = receiptOf(receipt);
  if (said === undefined) return receipt === undefined ? "" : "cannot be read";
  const sandbox = enumName(SandboxLevelSchema, said.sandbox);
  return `${enumName(ExecutionOutcomeSchema, said.outcome)} at ${timeText(said.endTime)}, sandbox ${sandbox}, signed by ${said.deviceId}`;
}

function tookText({ createTime, endTime }: Call): string {
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
