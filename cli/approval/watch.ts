import { isPending, watchApprovals as watchAll } from "../../client/approvals.ts";
import {
  type Approval,
  ApprovalSchema,
  ApprovalState,
  ApprovalStateSchema,
} from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonLine, wholeJson } from "../print/json.ts";
import { namedId } from "../print/named-id.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import { watchNotes } from "../watch-notes.ts";
import { createAskQueue } from "./ask-queue.ts";
import { whereText } from "./summary.ts";

/**
 * Shows approvals as they change, the pending ones first: as JSON a line each, otherwise in words. On a terminal each
 * pending one is asked about, one at a time, and a question that is moot is taken back, with why. Goes on over restarts of
 * the control plane; rejects where it cannot be reached at the beginning, and when the token is refused.
 */
export async function watchApprovals(session: Session, json: boolean, context: CommandContext): Promise<void> {
  const mayAsk = canAsk(context) && !json && (await session.operator.isPossible());
  const asking = mayAsk ? createAskQueue(session, context) : undefined;
  const style = styleFor(context, context.stdout);
  const show = (approval: Approval): void => {
    if (json) {
      context.stdout.write(jsonLine(wholeJson(ApprovalSchema, approval)));
      return;
    }
    const line = visibleLine(
      `${approval.id} ${stateText(approval)}: ${approval.spec?.tool} on ${approval.spec && whereText(approval.spec)}`,
    );
    context.stdout.write(`${isPending(approval) ? style.yellow(line) : line}\n`);
    if (isPending(approval)) void asking?.ask(approval.id);
    else asking?.withdraw(approval.id, mootText(approval));
  };
  const changes = watchAll(session.approvals, {
    ...watchNotes("policy", context),
    onGone: (approvalId) => asking?.withdraw(approvalId, "it is not known any more"),
  });
  for await (const approval of changes) show(approval);
}

function stateText({ status }: Approval): string {
  const { decidedBy = "", decidedByName = "" } = status ?? {};
  return `${enumName(ApprovalStateSchema, status?.state)}${decidedBy === "" ? "" : ` by ${namedId(decidedByName, decidedBy)}`}`;
}

/** Why no decision is needed any more. */
function mootText(approval: Approval): string {
  const comment = approval.status?.comment ?? "";
  return approval.status?.state === ApprovalState.CANCELED && comment !== "" ? comment : stateText(approval);
}
