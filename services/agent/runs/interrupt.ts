import { RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { RunJournal } from "../engine/engine.ts";
import { isEnded } from "./states.ts";
import type { RunStore } from "./store.ts";

/** What interrupting needs. */
export interface InterruptPorts {
  store: Pick<RunStore, "get">;
  journal: Pick<RunJournal, "end">;
  /** The state of a call, such as "succeeded", as the registry knows it; undefined where it does not say. */
  callState(agent: string, callId: string): Promise<string | undefined>;
}

/** What a call is reported to be before its end. */
const OPEN = new Set(["sent", "held", "queued"]);

/**
 * Ends a run whose process is gone, with what is known of it. Of each call that it was waiting for the registry is asked what
 * became of it: what is held or runs goes on there, and is not called again.
 */
export async function interruptRun({ store, journal, callState }: InterruptPorts, runId: string): Promise<void> {
  const run = await store.get(runId);
  const { status } = run ?? {};
  if (run === undefined || status === undefined || isEnded(status.state)) return;
  const calls = await Promise.all(
    status.calls.map(async (call) => {
      if (!OPEN.has(call.state)) return call;
      const state = await callState(run.spec?.agent ?? "", call.callId);
      return { ...call, state: state ?? call.state };
    }),
  );
  await journal.end(runId, {
    state: RunState.INTERRUPTED,
    end: "interrupted",
    text: status.text,
    error: { reason: ErrorReason.INTERRUPTED, message: "the process that the run was in ended before it" },
    turns: status.turns,
    usage: status.usage ?? {},
    calls,
  });
}
