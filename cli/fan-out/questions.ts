import { type HeldCall, helpHeldCall } from "../call/held.ts";
import type { CommandContext } from "../command-context.ts";
import type { Session } from "../session.ts";

/** Questions about what is held, one after the other: a terminal has room for one. */
export interface Questions {
  /** Asks when it is this one's turn. Does nothing for one that waits already. */
  ask(held: HeldCall): void;
  /** Takes the question about a call back: it has gone on. */
  withdraw(id: string): void;
  /** Takes all back, and resolves when none is open. */
  settled(): Promise<void>;
}

/** @param yieldTerminal leaves the terminal to a question; the result takes it back. */
export function createQuestions(
  session: Session,
  context: CommandContext,
  yieldTerminal: () => (() => void) | undefined,
): Questions {
  const open = new Map<string, AbortController>();
  let last: Promise<void> = Promise.resolve();
  return {
    ask(held) {
      if (open.has(held.id)) return;
      const moot = new AbortController();
      open.set(held.id, moot);
      last = last.then(async () => {
        if (moot.signal.aborted) return;
        const takeBack = yieldTerminal();
        await helpHeldCall(held, { session, context, signal: moot.signal });
        takeBack?.();
      });
    },
    withdraw(id) {
      open.get(id)?.abort();
      open.delete(id);
    },
    async settled() {
      for (const moot of open.values()) moot.abort();
      await last;
    },
  };
}
