import { ConnectError } from "@connectrpc/connect";
import { mayReconnect, pause } from "../../../client/retry.ts";
import { thrownFacts } from "../../../lib/model-tools/error-text.ts";
import { refusedResult } from "./prepare-call.ts";
import type { CallView, Toolbox, ToolCall } from "./toolbox.ts";

/** How to be patient. */
export interface PatientOptions {
  toolbox: Toolbox;
  /** Brings the end of a call as an answer, once it has one. Again for the same call: nothing more. */
  watch(callId: string): void;
  /** The run is canceled. */
  canceled: AbortSignal;
  /** The process ends, and the run with it. */
  closing: AbortSignal;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/**
 * A submitting toolbox for a run in this process: while the registry cannot be reached it tries again, as a durable engine
 * repeats a step, and whatever waits is watched for its end.
 */
export function createPatientToolbox({ toolbox, watch, canceled, closing }: PatientOptions): Toolbox {
  /** Undefined where it was given up before the registry could be reached. */
  const reach = async (part: () => Promise<CallView>, givenUp: AbortSignal): Promise<CallView | undefined> => {
    for (let failures = 0; ; failures++) {
      try {
        return await part();
      } catch (thrown: unknown) {
        const passes = thrown instanceof ConnectError && mayReconnect(thrown);
        if (!passes) return { kind: "ended", result: refusedResult(thrownFacts(thrown)) };
      }
      await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures), givenUp);
      if (givenUp.aborted) return undefined;
    }
  };
  const patiently = async (call: ToolCall, part: () => Promise<CallView>, giveUp: boolean): Promise<CallView> => {
    const view = await reach(part, giveUp ? AbortSignal.any([canceled, closing]) : closing);
    // Nothing may follow: the run is said to be interrupted.
    if (view === undefined && closing.aborted) return new Promise<never>(() => undefined);
    if (view?.kind === "ended") return view;
    watch(call.callId);
    return view ?? { kind: "waiting" };
  };
  return {
    // Once it is canceled it must not be sent any more: the cancel goes out instead.
    submit: (call) => patiently(call, () => toolbox.submit(call), true),
    look: (call, why) => patiently(call, () => toolbox.look(call, why), !why.canceled),
    cancel: (call) => patiently(call, () => toolbox.cancel(call), false),
  };
}
