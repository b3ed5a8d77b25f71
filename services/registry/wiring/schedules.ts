import type { Calls } from "../calls/calls.ts";
import { receiveCall } from "../calls/receive.ts";
import type { Directory } from "../devices/directory.ts";
import type { Setup } from "../options.ts";
import { openFirer } from "../schedules/fire.ts";
import { createSchedules, type Schedules } from "../schedules/schedules.ts";
import { createScheduleStore } from "../schedules/store.ts";
import type { State, Writes } from "./state.ts";

/** What schedules are made of. */
export interface ScheduleParts {
  setup: Setup;
  state: State;
  writes: Writes;
  directory: Directory;
  calls: Calls;
}

const KEEP_MS = 30 * 86_400_000;

/** Opens the schedules, and fires them until `parts` are closed. */
export function openSchedules(
  { setup: { config, logger, now }, state, writes, directory, calls }: ScheduleParts,
  parts: AsyncDisposableStack,
): Schedules {
  const store = createScheduleStore(state.db, writes.writes, state.sealer);
  const firer = openFirer({ store, calls, logger, now, keepMs: config.callRetentionMs ?? KEEP_MS });
  parts.defer(() => firer.close());
  const receive = (request: Parameters<typeof receiveCall>[0]) =>
    receiveCall(request, { directory, now, newCallId: () => "" });
  return createSchedules({ store, calls, directory, receive, firer, now });
}
