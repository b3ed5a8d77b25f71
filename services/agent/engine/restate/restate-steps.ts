import type { JsonValue } from "@bufbuild/protobuf";
import { RestatePromise, type WorkflowContext } from "@restatedev/restate-sdk";
import type { Answer, Steps, Wait } from "../../loop/steps.ts";

/** What the steps of one run ask of the world outside its journal. */
export interface StepPorts {
  /** Whether the run is to be canceled: what its row says. */
  isCanceled(): Promise<boolean>;
  /**
   * Notes what the run waits for and how it is woken, then returns the first of it that has come. Whatever comes after that
   * wakes the run.
   */
  waitFor(names: readonly string[], waker: string): Promise<{ name: string; value: JsonValue } | undefined>;
}

/** What a step keeps beside its result. */
interface Kept<T> {
  value: T;
  canceled: boolean;
}

/** How often a running effect asks whether its run was canceled, in milliseconds. */
const ASK_MS = 1000;

/**
 * Steps whose results Restate keeps. Everything that differs between two executions is read inside an effect and kept with
 * its result, so that a run that is played again takes the same way: also whether it was canceled. A wake-up carries
 * nothing: what came is read from the rows and the registry, so a forged or repeated one is only a look too many.
 */
export function createRestateSteps(ctx: WorkflowContext, ports: StepPorts): Steps {
  const canceled = new AbortController();
  const timers = new Map<string, RestatePromise<string>>();
  let waits = 0;

  const keep = async <T>(name: string, effect: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const kept = await ctx.run(name, () => askWhile(ports, ctx.request().attemptCompletedSignal, effect));
    if (kept.canceled) canceled.abort();
    return kept.value;
  };

  const timerOf = ({ name, seconds }: Wait): RestatePromise<string>[] => {
    if (seconds === undefined) return [];
    const timer = timers.get(name) ?? ctx.sleep(seconds * 1000).map(() => name);
    timers.set(name, timer);
    return [timer];
  };

  return {
    signal: canceled.signal,
    do: keep,
    async answer(asked: readonly Wait[]): Promise<Answer | undefined> {
      const known = canceled.signal.aborted;
      for (const { name, seconds } of asked) if (seconds === undefined) timers.delete(name);
      for (;;) {
        const woken = ctx.awakeable<JsonValue>();
        const names = asked.map(({ name }) => name);
        const came = await keep(`wait/${waits++}`, async () => (await ports.waitFor(names, woken.id)) ?? null);
        if (came !== null) {
          timers.delete(came.name);
          return came;
        }
        if (canceled.signal.aborted && !known) return undefined;
        const over = await RestatePromise.race([woken.promise.map(() => ""), ...asked.flatMap(timerOf)]);
        if (over === "") continue;
        timers.delete(over);
        return { name: over, value: undefined };
      }
    },
  };
}

/** Runs an effect and asks meanwhile whether its run was canceled; its signal is aborted then, and when the attempt ends. */
async function askWhile<T>(
  { isCanceled }: StepPorts,
  attemptEnded: AbortSignal,
  effect: (signal: AbortSignal) => Promise<T>,
): Promise<Kept<T>> {
  const abort = new AbortController();
  let canceled = await isCanceled();
  if (canceled) abort.abort();
  const leave = () => abort.abort();
  attemptEnded.addEventListener("abort", leave, { once: true });
  const asking = setInterval(() => {
    isCanceled().then(
      (now) => {
        canceled ||= now;
        if (canceled) abort.abort();
      },
      // The effect's own end says whether the database is back.
      () => undefined,
    );
  }, ASK_MS);
  try {
    const value = await effect(abort.signal);
    if (attemptEnded.aborted && !canceled) throw new Error("the attempt ended before the effect");
    return { value, canceled };
  } finally {
    clearInterval(asking);
    attemptEnded.removeEventListener("abort", leave);
  }
}
