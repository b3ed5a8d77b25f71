import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type Approval,
  ApprovalSchema,
  ApprovalState,
  ApprovalStateSchema,
} from "../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonLine, wholeJson } from "../print/json.ts";
import { namedId } from "../print/named-id.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import { createAskQueue } from "./ask-queue.ts";
import { whereText } from "./card.ts";
import { isPending, readApproval } from "./decide.ts";
import { keepWatching } from "./keep-watching.ts";

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
  /** What was settled while there was no connection is not told by the stream that comes after it. */
  const catchUp = async (): Promise<void> => {
    for (const id of asking?.asked() ?? []) {
      const approval = await readApproval(session, id).catch((error: unknown) => {
        if (reasonOf(error) !== ErrorReason.NOT_FOUND) throw error;
        return undefined;
      });
      if (approval === undefined) asking?.withdraw(id, "it is not known any more");
      else if (!isPending(approval)) show(approval);
    }
  };
  await keepWatching({
    connect: async () => {
      await session.approvals.listApprovals({ state: ApprovalState.PENDING, pageSize: 1 });
      await catchUp();
    },
    async watch() {
      for await (const { approval } of session.approvals.watchApprovals({})) if (approval !== undefined) show(approval);
    },
    isFinal,
    onLost: (error) => {
      const why = error === undefined ? "it was closed" : visibleLine(ConnectError.from(error).rawMessage);
      context.stderr.write(`reeve: no connection to policy (${why}); trying again, and nothing is watched meanwhile\n`);
    },
    onBack: () => context.stderr.write("reeve: connected to policy again\n"),
  });
}

function stateText({ status }: Approval): string {
  const { decidedBy = "", decidedByName = "" } = status ?? {};
  return `${enumName(ApprovalStateSchema, status?.state)}${decidedBy === "" ? "" : ` by ${namedId(decidedByName, decidedBy)}`}`;
}

/** Why nobody needs to decide about it any more. */
function mootText(approval: Approval): string {
  const comment = approval.status?.comment ?? "";
  return approval.status?.state === ApprovalState.CANCELLED && comment !== "" ? comment : stateText(approval);
}

/** Errors that trying again does not mend: this caller, or this address, is the wrong one. */
const FINAL: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.Unimplemented,
  Code.InvalidArgument,
]);

function isFinal(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return true;
  return FINAL.has(error.code) || error.cause instanceof UsageError;
}
