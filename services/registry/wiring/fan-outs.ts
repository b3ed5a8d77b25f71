import { timeOrderedId } from "../../../lib/ids/time-ordered-id.ts";
import type { Calls } from "../calls/calls.ts";
import { receiveCall } from "../calls/receive.ts";
import type { Directory } from "../devices/directory.ts";
import { createFanOuts, type FanOuts } from "../fan-out/fan-outs.ts";
import { createFanOutStore, type FanOutStore } from "../fan-out/store.ts";
import type { Setup } from "../options.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { Cluster } from "./cluster.ts";
import type { State, Writes } from "./state.ts";

/** What fan-outs are made of. */
export interface FanOutParts {
  setup: Setup;
  state: State;
  cluster: Cluster;
  writes: Writes;
  policy: PolicyLink;
  directory: Directory;
  calls: Calls;
}

/** Opens the fan-outs, until `parts` are closed. */
export function openFanOuts(
  { setup, state, cluster, writes, policy, directory, calls }: FanOutParts,
  parts: AsyncDisposableStack,
): { fanOuts: FanOuts; store: FanOutStore } {
  const { logger, now, tokenStatuses } = setup;
  const store = createFanOutStore(state.db, writes.writes, state.sealer, state.self);
  const fanOuts = createFanOuts({
    calls,
    directory,
    receive: (request) => receiveCall(request, { directory, now, newCallId: () => "" }),
    policy,
    store,
    tokenStatuses,
    membership: cluster.membership,
    newFanOutId: () => timeOrderedId("fan", now()),
    logger,
    now,
  });
  parts.defer(() => fanOuts.close());
  return { fanOuts, store };
}
