import { type Model, ModelError, type ModelErrorKind, type Turn, type TurnRequest } from "../providers/model.ts";
import type { AgentEvent } from "./events.ts";
import type { Steps } from "./steps.ts";

/** What a model takes its turn on. */
export interface TurnOptions extends Pick<TurnRequest, "system" | "messages" | "tools"> {
  model: Model;
  steps: Steps;
  onEvent: (event: AgentEvent) => void;
}

/** What a turn came to. Plain JSON. */
type TurnOutcome = { turn: Turn } | { error: { kind: ModelErrorKind; message: string; status?: number } };

/** What passes by itself: a durable run tries again for as long as it takes, an inline one ends with it. */
const PASSING: ReadonlySet<ModelErrorKind> = new Set(["rate_limited", "overloaded", "unreachable", "timed_out"]);

/** Lets the model take one turn, as a step. Throws ModelError. */
export async function takeTurn(number: number, options: TurnOptions): Promise<Turn> {
  const { model, steps, system, messages, tools, onEvent } = options;
  const onText = (text: string) => onEvent({ kind: "text", text });
  const outcome = await steps.do(`turn/${number}`, async (signal): Promise<TurnOutcome> => {
    try {
      return { turn: await model.turn({ system, messages, tools, signal, onText }) };
    } catch (thrown: unknown) {
      if (!(thrown instanceof ModelError) || PASSING.has(thrown.kind)) throw thrown;
      const { kind, message, status } = thrown;
      return { error: { kind, message, ...(status !== undefined && { status }) } };
    }
  });
  if ("turn" in outcome) return outcome.turn;
  throw new ModelError(outcome.error.kind, outcome.error.message, { status: outcome.error.status });
}
