import type { GovernedCall } from "./governed-call.ts";
import { isEnd } from "./lifecycle.ts";

/** How long a state has to last until it is written, at most, in milliseconds. Most calls have ended by then. */
const LOOK_MS = 100;

/**
 * Collects calls whose state is worth writing only if it lasts, and passes those on that have not ended at the next look.
 * A write for each would be one of four that a short call costs, and its end replaces it at once.
 */
export function createLastingStates(write: (call: GovernedCall) => void): (call: GovernedCall) => void {
  const open = new Set<GovernedCall>();
  const look = (): void => {
    const calls = [...open];
    open.clear();
    for (const call of calls) if (!isEnd(call.status.state)) write(call);
  };
  return (call) => {
    if (open.size === 0) setTimeout(look, LOOK_MS).unref();
    open.add(call);
  };
}
