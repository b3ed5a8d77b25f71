import { isStricter } from "../rules/effect.ts";
import type { Judgment, TraceStep } from "./decide.ts";

/** What policy thinks of a fan-out's call on one device. */
export interface DeviceJudgment {
  /** The device's name, for the message. */
  name: string;
  judgment: Judgment;
}

/** How many devices a message names. */
const NAMED = 10;

/**
 * The judgment about a fan-out as a whole: the strictest of those about its devices. What is not allowed on one device is
 * not allowed at all, and the message names every device that it is not allowed on. Pure.
 *
 * @param judged one for each device, at least one.
 */
export function decideWhole(judged: readonly DeviceJudgment[]): Judgment {
  const [first] = judged;
  if (first === undefined) throw new TypeError("a fan-out has a device");
  const strictest = judged.reduce((one, other) =>
    isStricter(other.judgment.effect, one.judgment.effect) ? other : one,
  ).judgment;
  const against = judged.filter(({ judgment }) => judgment.effect === "deny" || judgment.effect === "block");
  return {
    effect: strictest.effect,
    reason: strictest.reason,
    // Each call of it is asked about again, and gets the limit of its own device.
    maxRunMs: 0,
    ruleIds: [...new Set(judged.flatMap(({ judgment }) => judgment.ruleIds))],
    message: against.length === 0 ? strictest.message : `On ${namesOf(against)}: ${strictest.message}`,
    trace: mergedTrace(judged.map(({ judgment }) => judgment.trace)),
  };
}

function namesOf(judged: readonly DeviceJudgment[]): string {
  const names = judged.slice(0, NAMED).map(({ name }) => name);
  const more = judged.length - names.length;
  return more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
}

/** One step for each rule and effect: matched where it matched for any device. */
function mergedTrace(traces: readonly (readonly TraceStep[])[]): TraceStep[] {
  const steps = new Map<string, TraceStep>();
  for (const step of traces.flat()) {
    const key = `${step.ruleId} ${step.effect}`;
    const known = steps.get(key);
    if (known === undefined || (step.matched && !known.matched)) steps.set(key, step);
  }
  return [...steps.values()];
}
