import type { JsonValue } from "@bufbuild/protobuf";
import type { Answer, Steps, Wait } from "./steps.ts";

/** The steps of a run that lives and dies with its process. */
export interface InlineSteps extends Steps {
  /** Brings what the run waits for by this name, or will. What was brought before counts. */
  deliver(name: string, value: JsonValue): void;
}

/** The longest timer of the platform, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Steps that keep nothing: effects run at once, and answers come through `deliver`. */
export function createInlineSteps(signal: AbortSignal = new AbortController().signal): InlineSteps {
  const came = new Map<string, JsonValue>();
  const deadlines = new Map<string, number>();
  let wake = Promise.withResolvers<void>();

  const find = (waits: readonly Wait[]): Answer | undefined => {
    for (const { name } of waits) {
      const value = came.get(name);
      if (value === undefined) continue;
      came.delete(name);
      return { name, value };
    }
    const over = waits.find(({ name }) => (deadlines.get(name) ?? Number.POSITIVE_INFINITY) <= performance.now());
    return over && { name: over.name, value: undefined };
  };

  return {
    signal,
    do: (_name, effect) => effect(signal),
    deliver(name, value) {
      if (!came.has(name)) came.set(name, value);
      wake.resolve();
    },
    async answer(waits) {
      const alreadyCanceled = signal.aborted;
      for (const { name, seconds } of waits) {
        if (seconds === undefined) deadlines.delete(name);
        else if (!deadlines.has(name)) deadlines.set(name, performance.now() + seconds * 1000);
      }
      for (;;) {
        const answer = find(waits);
        if (answer !== undefined) deadlines.delete(answer.name);
        if (answer !== undefined || (signal.aborted && !alreadyCanceled)) return answer;
        wake = Promise.withResolvers();
        const first = Math.min(...waits.map(({ name }) => deadlines.get(name) ?? Number.POSITIVE_INFINITY));
        await woken(wake, first - performance.now(), signal);
      }
    },
  };
}

/** Resolves when something came, when the time is over, and when the signal is aborted. */
async function woken(wake: PromiseWithResolvers<void>, ms: number, signal: AbortSignal): Promise<void> {
  const timer = Number.isFinite(ms)
    ? setTimeout(wake.resolve, Math.min(Math.max(Math.ceil(ms), 0), LONGEST_TIMER_MS))
    : undefined;
  const aborted = () => wake.resolve();
  signal.addEventListener("abort", aborted, { once: true });
  try {
    await wake.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", aborted);
  }
}
