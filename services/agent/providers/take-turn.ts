import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { createNameMap, type NameMap } from "../../../lib/model-tools/names.ts";
import type { Failure } from "./failure.ts";
import { ModelError, type Turn, type TurnRequest } from "./model.ts";
import { type Price, withCost } from "./prices.ts";

/** How a turn is taken, whatever the provider. */
export interface TurnSettings {
  /** The longest one turn may take with all its tries, in milliseconds. Default 600000. */
  timeoutMs?: number;
  /** How often a turn is tried again that failed before any text came. Default 2. */
  maxRetries?: number;
  /** What the model costs, by the length of the prompt. Default: not known. */
  prices?: readonly Price[];
}

/** One provider's part of a turn. */
export interface TurnTry {
  /** The longest name of a tool that the provider takes. Default 128. */
  maxNameLength?: number;
  once(request: TurnRequest, names: NameMap, signal: AbortSignal): Promise<Turn>;
  failure(thrown: unknown): Failure;
}

/** The longest pause before a try, in milliseconds, whatever a provider asks for. */
const MAX_PAUSE_MS = 60_000;

/** The settings with their defaults. */
export function turnSettings(settings: TurnSettings): Required<TurnSettings> {
  const { timeoutMs = 600_000, maxRetries = 2, prices = [] } = settings;
  return { timeoutMs, maxRetries, prices };
}

/**
 * Takes a turn, and takes it again where it failed for now and nothing of it was shown: the adapters' SDKs try nothing
 * again themselves. Throws ModelError.
 */
export async function takeTurn(
  request: TurnRequest,
  { timeoutMs, maxRetries, prices }: Required<TurnSettings>,
  { maxNameLength, once, failure }: TurnTry,
): Promise<Turn> {
  const names = namesOf(request, maxNameLength);
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([request.signal, deadline]);
  for (let retry = 0; ; retry++) {
    let spoke = false;
    const onText = (text: string): void => {
      spoke = true;
      request.onText(text);
    };
    try {
      const turn = await once({ ...request, onText }, names, signal);
      return { ...turn, usage: withCost(turn.usage, prices) };
    } catch (thrown: unknown) {
      const { error, again, afterMs = 250 * 2 ** retry } = failure(thrown);
      if (!signal.aborted && !spoke && again && retry < maxRetries) {
        await sleep(Math.min(afterMs, MAX_PAUSE_MS), undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) continue;
      }
      if (request.signal.aborted) throw new ModelError("canceled", "the run was canceled", { cause: thrown });
      if (deadline.aborted) {
        throw new ModelError("timed_out", `the model did not answer within ${timeoutMs} ms`, { cause: thrown });
      }
      throw error;
    }
  }
}

function namesOf(request: TurnRequest, maxLength: number | undefined): NameMap {
  try {
    return createNameMap(
      request.tools.map((tool) => tool.name),
      maxLength,
    );
  } catch (cause: unknown) {
    throw new ModelError("rejected", ConnectError.from(cause).rawMessage, { cause });
  }
}
