import { RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";

/** The states of a run that go on. */
export const OPEN_STATES: readonly RunState[] = [RunState.PENDING, RunState.RUNNING, RunState.WAITING];

/** Whether a run in this state has ended. */
export function isEnded(state: RunState): boolean {
  return state !== RunState.UNSPECIFIED && !OPEN_STATES.includes(state);
}

/** The state of a run that has not ended, by what it waits for now. */
export function openState(waits: readonly { what: string }[]): RunState {
  const waiting = waits.length > 0 && waits.every(({ what }) => what !== "running");
  return waiting ? RunState.WAITING : RunState.RUNNING;
}
