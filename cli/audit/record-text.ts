import { durationMs } from "@bufbuild/protobuf/wkt";
import type { CompleteCall } from "../../client/complete-call.ts";
import { ApprovalStateSchema } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { LogEntry } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import type { AuditRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallStateSchema, DecisionKind, DecisionKindSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { reasonName } from "../../lib/fault/fault.ts";
import { callLine } from "../call/call-line.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName } from "../print/enum-name.ts";
import { nameOr } from "../print/named-id.ts";
import { listTable, type TableParts } from "../print/table.ts";
import { ageText, timeText } from "../print/time.ts";

/**
 * Records as a table.
 *
 * @param calls what the registry knows of the calls in them, by id: the log itself has digests only.
 */
export function recordsTable(
  entries: readonly LogEntry[],
  calls: ReadonlyMap<string, CompleteCall>,
  context: CommandContext,
  parts: TableParts = {},
): string {
  const names = new Map([...calls.values()].map((call) => [call.spec.principalId, call.spec.principalName]));
  const rows = entries.map(({ index, record }) => [
    String(index),
    timeText(record?.time),
    ageText(record?.time, context.now()),
    nameOr(names.get(record?.actor ?? "") ?? "", record?.actor ?? ""),
    record === undefined ? "cannot be read" : eventText(record),
    record === undefined ? "" : subjectText(record, calls.get(record.callId)),
    record?.callId ?? "",
  ]);
  const columns = ["INDEX", "TIME", "AGE", "BY", "WHAT", "OF", "CALL"];
  return listTable(columns, rows, context, { keep: ["INDEX", "TIME"], parts });
}

/** What a record is about: the call with its arguments and its device's name, where the registry still has them. */
function subjectText(record: AuditRecord, call: CompleteCall | undefined): string {
  if (call === undefined) return record.resource;
  return `${callLine(call.spec.tool, call.spec.arguments, 40)} on ${nameOr(call.spec.deviceName, call.spec.deviceId)}`;
}

/** What a record says happened, such as "decided: hold by shell/always-ask". */
export function eventText({ event }: AuditRecord): string {
  switch (event.case) {
    case "decided": {
      const { ruleIds, reason } = event.value;
      const decision = enumName(DecisionKindSchema, event.value.decision);
      const why = event.value.decision === DecisionKind.DENIAL ? ` (${reasonName(reason)})` : "";
      return `decided: ${decision}${why}${ruleIds.length > 0 ? ` by ${ruleIds.join(", ")}` : ""}`;
    }
    case "approvalDecided":
      return `approval ${event.value.approvalId}: ${enumName(ApprovalStateSchema, event.value.state)}`;
    case "outcome":
      return `ended: ${enumName(CallStateSchema, event.value.state)} after ${event.value.duration ? durationMs(event.value.duration) : 0} ms`;
    case "policyLoaded": {
      const { accepted, policyVersion, problem } = event.value;
      return accepted ? `policy ${policyVersion} loaded` : `policy ${policyVersion} refused: ${problem}`;
    }
    default:
      return "something newer than this program";
  }
}
