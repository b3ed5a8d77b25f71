import type { Client } from "@connectrpc/connect";
import type { Run, RunEvent } from "../gen/ts/reeve/agent/v1/run_pb.ts";
import type { RunService } from "../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { reopened, type WatchOptions } from "./retry.ts";

/** How to watch a run. */
export interface WatchRunOptions extends WatchOptions {
  /** The number of the first event wanted. Default: all. */
  fromSequence?: number;
  /** Receives the run as it is when the watch begins, and again after each interruption. */
  onRun?: (run: Run) => void;
}

/**
 * What happens in a run, in order and each once, its end last. Goes on over restarts of the agent service, from the event
 * after the last one that came. Rejects where the service cannot be reached at the beginning, and with any error that is
 * final.
 */
export async function* watchRun(
  client: Pick<Client<typeof RunService>, "getRun" | "watchRun">,
  runId: string,
  options: WatchRunOptions = {},
): AsyncGenerator<RunEvent> {
  const call = options.signal === undefined ? {} : { signal: options.signal };
  let next = options.fromSequence ?? 0;
  const open = async () => {
    await client.getRun({ runId }, call);
    return client.watchRun({ runId, fromSequence: next }, call);
  };
  for await (const { event, run } of reopened(open, options)) {
    if (run !== undefined) options.onRun?.(run);
    // Nothing comes of a run that ended before the event that was asked for.
    if (run?.status?.endTime !== undefined && run.status.lastSequence < next) return;
    if (event === undefined) continue;
    next = event.sequence + 1;
    yield event;
    if (event.event.case === "state" && event.event.value.status !== undefined) return;
  }
}
