import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { askForApproval, type TakeBack } from "../approval/ask.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { canAsk } from "../print/prompt.ts";
import type { Session } from "../session.ts";
import { heldText } from "./show-call.ts";

/** A call that waits for a human. */
export interface HeldCall {
  id: string;
  approvalId: string;
}

/** How a held call is helped on. */
export interface HeldOptions {
  session: Session;
  context: CommandContext;
  /** Ends the question when the call has gone on. */
  signal: AbortSignal;
  /** How the call is taken back; see AskOptions. */
  takeBack?: TakeBack;
}

/**
 * Asks the person at the terminal about a call of their own that is held, where there is a terminal and the person may
 * decide; otherwise says how it can be approved.
 */
export async function helpHeldCall(held: HeldCall, options: HeldOptions): Promise<void> {
  const { session, context, signal, takeBack } = options;
  const say = (text: string) => context.stderr.write(`reeve: ${text}\n`);
  if (!canAsk(context) || !session.hasPolicy || !(await session.operator.isPossible())) return void say(heldText(held));
  try {
    const answer = await askForApproval({ session, context, approvalId: held.approvalId, signal, takeBack });
    if (answer === "undecided" && !signal.aborted) say(heldText(held));
  } catch (error: unknown) {
    if (signal.aborted) return;
    if (reasonOf(error) === ErrorReason.FOUR_EYES) say("another person than you must decide about this call");
    if (error instanceof UsageError) say(error.message);
    say(heldText(held));
  }
}
