import { isStricter } from "../rules/policy.ts";
import type { Evaluation, TraceStep } from "./evaluate.ts";

/** What the rules say of a fan-out's call on one device. */
export interface DeviceEvaluation {
  /** The device's name, for the message. */
  name: string;
  evaluation: Evaluation;
}

/** How many devices a message names. */
const NAMED = 10;

/**
 * The evaluation of a fan-out: the strictest of those for its devices. What is not allowed on one device is not allowed at
 * all, and the message names every device that it is not allowed on. Its calls are evaluated again one by one and get the
 * obligations of their own device. Pure.
 *
 * @param all one for each device, at least one.
 */
export function combineDevices(all: readonly DeviceEvaluation[]): Evaluation {
  const [first] = all;
  if (first === undefined) throw new TypeError("a fan-out has a device");
  const { evaluation } = all.reduce((one, other) =>
    isStricter(other.evaluation.effect, one.evaluation.effect) ? other : one,
  );
  const against = all.filter(({ evaluation: { effect } }) => effect === "deny" || effect === "block");
  return {
    effect: evaluation.effect,
    reason: evaluation.reason,
    obligations: {},
    ruleIds: [...new Set(all.flatMap((one) => one.evaluation.ruleIds))],
    message: against.length === 0 ? evaluation.message : `On ${namesOf(against)}: ${evaluation.message}`,
    trace: mergedTrace(all.map((one) => one.evaluation.trace)),
  };
}

function namesOf(devices: readonly DeviceEvaluation[]): string {
  const names = devices.slice(0, NAMED).map(({ name }) => name);
  const more = devices.length - names.length;
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
