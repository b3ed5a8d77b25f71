import type { LogEntry } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import type { Record } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { reasonName } from "../../lib/fault/fault.ts";
import type { Style } from "../print/style.ts";
import { table } from "../print/table.ts";
import { timeText } from "../print/time.ts";

/** Records as a table. */
export function recordsTable(entries: readonly LogEntry[], style: Style): string {
  const rows = entries.map(({ index, record }) => [
    String(index),
    timeText(record?.time),
    record?.actor ?? "",
    record?.callId ?? "",
    record?.resource ?? "",
    record === undefined ? "cannot be read" : eventText(record),
  ]);
  return table(["INDEX", "TIME", "ACTOR", "CALL", "RESOURCE", "WHAT"], rows, { style });
}

/** What a record says happened, such as "decided: hold by shell/always-ask". */
export function eventText({ event }: Record): string {
  switch (event.case) {
    case "decided": {
      const { decision, ruleIds, reason } = event.value;
      const why = decision === "denial" ? ` (${reasonName(reason)})` : "";
      return `decided: ${decision}${why}${ruleIds.length > 0 ? ` by ${ruleIds.join(", ")}` : ""}`;
    }
    case "approvalDecided":
      return `approval ${event.value.approvalId}: ${event.value.state}`;
    case "outcome":
      return `ended: ${event.value.state.toLowerCase()} after ${event.value.durationMs} ms`;
    case "policyLoaded": {
      const { accepted, policyVersion, problem } = event.value;
      return accepted ? `policy ${policyVersion} loaded` : `policy ${policyVersion} refused: ${problem}`;
    }
    default:
      return "something newer than this program";
  }
}
