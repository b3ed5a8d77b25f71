import type { CompleteCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { openLogFile } from "../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../lib/audit-verify/verify.ts";
import { renderReport } from "../audit/verify-report.ts";
import { recordedCall } from "../call/recorded-call.ts";
import { receiptJson } from "../call/show-receipt.ts";
import { databaseFile } from "../database-file.ts";
import type { Style } from "../print/style.ts";
import type { Session } from "../session.ts";
import type { Stack } from "../stack/stack.ts";

/** What is proved. */
export interface ProveOptions {
  stack: Stack;
  dataDir: string;
  session: Session;
  calls: readonly CompleteCall[];
  say(text: string): void;
  style: Style;
}

/** Prints one call's receipt, then stops everything and verifies the log from its file alone. */
export async function proveRecord({ stack, dataDir, session, calls, say, style }: ProveOptions): Promise<boolean> {
  const shown = calls.findLast((call) => call.status.state === CallState.SUCCEEDED);
  if (shown !== undefined) {
    const call = await recordedCall(session, shown);
    say(`\n${style.bold("The device's signed receipt of one call")}`);
    say(JSON.stringify(receiptJson(call.status.receipt), undefined, 2).replace(/^/gm, "  "));
    say(
      `  audit log: decision at ${call.status.decision?.auditIndex}, end at ${call.status.outcomeAuditIndex ?? "(not yet)"}`,
    );
  }
  const { checkpointKey } = stack;
  await stack.close();
  const source = openLogFile(databaseFile(dataDir));
  try {
    const report = await verifyLog(source, { verifierKey: checkpointKey });
    say(`\n${style.bold("The audit log, verified offline")}\n${renderReport(report, style).replace(/^/gm, "  ")}`);
    return report.ok;
  } finally {
    source.close();
  }
}
