import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createAskQueue } from "../approval/ask-queue.ts";
import { renderSummary } from "../approval/summary.ts";
import type { CommandContext } from "../command-context.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";

/** How the demo decides. */
export interface DeciderOptions {
  context: CommandContext;
  session: Session;
  /** Approve without asking. */
  yes: boolean;
  say(text: string): void;
}

/** Decides held calls. */
export interface Decider {
  /** A call waits. */
  decide(approvalId: string): void;
  /** It waits no more. */
  withdraw(approvalId: string): void;
}

/** The person at the terminal decides, or the demo itself where there is none or `--yes` was given. */
export function createDecider(options: DeciderOptions): Decider {
  const { context, session, yes, say } = options;
  if (canAsk(context) && !yes) {
    const queue = createAskQueue(session, context);
    return { decide: (approvalId) => void queue.ask(approvalId), withdraw: (approvalId) => queue.withdraw(approvalId) };
  }
  const decide = (approvalId: string) => {
    approveItself(approvalId, options).catch((error: unknown) => say(`the approval failed: ${String(error)}`));
  };
  return { decide, withdraw: () => undefined };
}

async function approveItself(approvalId: string, { context, session, yes, say }: DeciderOptions): Promise<void> {
  const { approval } = await session.approvals.getApproval({ approvalId });
  if (approval?.spec === undefined) return;
  say(renderSummary(approval, styleFor(context, context.stdout)));
  say(yes ? "Approved by the demo itself: --yes." : "Approved by the demo itself: there is no terminal to ask on.");
  try {
    await session.approvals.approve({ approvalId, summaryDigest: approval.spec.summaryDigest, channel: "demo" });
  } catch (error: unknown) {
    if (reasonOf(error) !== ErrorReason.APPROVAL_DECIDED) throw error;
  }
}
