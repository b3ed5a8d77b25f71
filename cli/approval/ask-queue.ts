import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import { type Answer, askForApproval, type TakeBack } from "./ask.ts";

/** Questions about held calls, asked one after the other: a terminal has room for one. */
export interface AskQueue {
  /** Asks when it is this one's turn. Does nothing for one that waits already. */
  ask(approvalId: string, takeBack?: TakeBack): Promise<Answer>;
  /** Takes a question back, with why: another person has answered, or the call has gone on. */
  withdraw(approvalId: string, why?: string): void;
}

/** A queue for this terminal. What goes wrong with a question is reported on standard error, and it stays undecided. */
export function createAskQueue(session: Session, context: CommandContext): AskQueue {
  const open = new Map<string, AbortController>();
  let last: Promise<unknown> = Promise.resolve();
  const askNow = async (approvalId: string, moot: AbortSignal, takeBack?: TakeBack): Promise<Answer> => {
    if (moot.aborted) return "undecided";
    try {
      return await askForApproval({ session, context, approvalId, signal: moot, takeBack });
    } catch (error: unknown) {
      context.stderr.write(`reeve: ${visibleLine(error instanceof Error ? error.message : String(error))}\n`);
      // A later showing asks again, as when the control plane is back.
      open.delete(approvalId);
      return "undecided";
    }
  };
  return {
    ask(approvalId, takeBack) {
      if (open.has(approvalId)) return Promise.resolve("undecided");
      const moot = new AbortController();
      open.set(approvalId, moot);
      const asked = last.then(() => askNow(approvalId, moot.signal, takeBack));
      last = asked;
      return asked;
    },
    withdraw(approvalId, why = "") {
      open.get(approvalId)?.abort(why);
      open.delete(approvalId);
    },
  };
}
