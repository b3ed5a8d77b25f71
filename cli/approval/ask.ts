import { isPending } from "../../client/approvals.ts";
import { type Approval, ApprovalState, ApprovalStateSchema } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { ApprovalFullText } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { askLine } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import { approve, deny, readApproval, readFullText, type Shown } from "./decide.ts";
import { renderDetails, renderSummary } from "./summary.ts";

/** What asking needs. */
export interface AskOptions {
  session: Session;
  context: CommandContext;
  approvalId: string;
  /** What the decider wants to say, for the record. */
  comment?: string;
  /** Ends the question when it has become moot. */
  signal?: AbortSignal;
  /**
   * How the caller itself takes back what it asked for. With it a no needs no operator, so that it is never harder to say
   * than a yes. Default: a no is an operator's.
   */
  takeBack?: TakeBack | undefined;
}

/** Takes back a call that waits for a human. */
export type TakeBack = () => Promise<unknown>;

/** What came of asking. "undecided": no answer, or this caller may not decide. */
export type Answer = "approved" | "denied" | "undecided";

/**
 * Shows the summary of a held call on the terminal and asks for a decision. An empty line is a no; the end of the input is no
 * decision; an abridged summary takes a yes only after all that would run was shown. Where another person was faster, that
 * decision is the answer.
 *
 * Throws what reading the approval throws, such as ROLE_REQUIRED.
 */
export async function askForApproval(options: AskOptions): Promise<Answer> {
  const { session, context, approvalId, comment, signal, takeBack } = options;
  const approval = await readApproval(session, approvalId);
  const style = styleFor(context, context.stderr);
  const say = (text: string) => context.stderr.write(`${text}\n`);
  let fullText: ApprovalFullText | undefined;
  say(renderSummary(approval, style));
  if (!isPending(approval)) return answerOf(approval);
  for (;;) {
    const line = await askLine(context, `${style.bold("Approve?")} [y/N/d(etails)] `, signal);
    const answer = meaningOf(line);
    if (signal?.aborted) {
      say(`${visibleLine(approvalId)} is not asked any more${mootText(signal.reason)}.`);
      return "undecided";
    }
    if (answer === "details") {
      fullText = approval.spec?.isAbridged ? await readFullText(session, approvalId) : undefined;
      say(renderDetails(approval, style, fullText));
    } else if (answer === "undecided") return answer;
    else if (answer === "approved" && approval.spec?.isAbridged && fullText === undefined) say(READ_FIRST);
    else return decideAs({ session, approval, fullText, comment, say, takeBack }, answer);
  }
}

/** The answer to a yes to an abridged summary. */
const READ_FIRST = "This summary does not show everything that would run. Answer d to read all of it, and then decide.";

function meaningOf(line: string | undefined): Answer | "details" {
  if (line === undefined) return "undecided";
  const word = line.trim().toLowerCase();
  if (word === "y" || word === "yes") return "approved";
  return word === "d" || word === "details" ? "details" : "denied";
}

interface Question extends Shown {
  session: Session;
  say(text: string): void;
  takeBack: TakeBack | undefined;
}

async function decideAs(question: Question, answer: "approved" | "denied"): Promise<Answer> {
  const { session, approval, say, takeBack } = question;
  try {
    if (answer === "approved") await approve(session, question);
    else if (takeBack !== undefined && !session.operator.isOpen) await takeBack();
    else await deny(session, approval.id, question.comment);
    return answer;
  } catch (error: unknown) {
    if (!SETTLED.has(reasonOf(error))) throw error;
    const now = await readApproval(session, approval.id);
    say(settledText(now));
    return answerOf(now);
  }
}

/** What a late answer is answered with. */
function settledText({ status }: Approval): string {
  if (status?.state === ApprovalState.CANCELED) return `Too late: ${visibleLine(status.comment)}. Nothing runs.`;
  if (status?.state === ApprovalState.EXPIRED) return "Too late: no decision in time. Nothing runs.";
  return `It was decided already: ${enumName(ApprovalStateSchema, status?.state)}.`;
}

/** Why a question was taken back, where that was given. */
function mootText(reason: unknown): string {
  return typeof reason === "string" && reason !== "" ? `: ${visibleLine(reason)}` : "";
}

const SETTLED: ReadonlySet<ErrorReason> = new Set([ErrorReason.APPROVAL_DECIDED, ErrorReason.APPROVAL_EXPIRED]);

function answerOf({ status }: Approval): Answer {
  if (status?.state === ApprovalState.APPROVED) return "approved";
  return status?.state === ApprovalState.DENIED ? "denied" : "undecided";
}
