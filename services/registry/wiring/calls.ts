import { timeOrderedId } from "../../../lib/ids/time-ordered-id.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { type Calls, createCalls } from "../calls/calls.ts";
import { type Claimer, createClaimer } from "../calls/claim.ts";
import { endCallsOfRevoked } from "../calls/end-revoked.ts";
import { createOwnership } from "../calls/ownership.ts";
import { createQuotas, DEFAULT_QUOTAS } from "../calls/quotas.ts";
import { createCallStore } from "../calls/store.ts";
import type { RegistryMetrics } from "../metrics.ts";
import type { Setup } from "../options.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import { openQueue } from "../queue/open-queue.ts";
import type { Cluster } from "./cluster.ts";
import type { Devices } from "./devices.ts";
import type { State, Writes } from "./state.ts";

/** How long calls that run have to end when the registry closes, in milliseconds. Another replica or the next start resumes the others. */
const DRAIN_MS = 5000;

/** What calls are made of. */
export interface CallParts {
  setup: Setup;
  state: State;
  cluster: Cluster;
  writes: Writes;
  policy: PolicyLink;
  devices: Devices;
  metrics: RegistryMetrics;
}

/** Opens the calls, and claims those of replicas that are gone, until `parts` are closed. */
export function openCalls(
  { setup, state, cluster, writes, policy, devices, metrics }: CallParts,
  parts: AsyncDisposableStack,
): { calls: Calls; claimer: Claimer } {
  const { config, bus, logger, now, tokenStatuses } = setup;
  const { db, bodies, self, alone } = state;
  const { directory, fleet, enrollment } = devices;
  const store = createCallStore({
    db,
    writes: writes.writes,
    outbox: writes.outbox,
    bodies,
    owner: self,
    sharesWithPolicy: state.commits !== undefined,
    now,
  });
  const ownershipWrites = createGroupCommit(db);
  parts.defer(() => ownershipWrites.close());
  const ownership = createOwnership(db, ownershipWrites, self, bodies);
  parts.defer(() => ownership.release());
  const queue = openQueue({ db, writes: writes.writes, directory, tokenStatuses, now });
  const calls = createCalls({
    self,
    queue,
    alone,
    store,
    ownership,
    quotas: createQuotas({ ...DEFAULT_QUOTAS, ...config.quotas }, metrics.quotaRefused),
    ask: (...question) => cluster.peers?.followCall(...question),
    policy,
    directory,
    logger,
    now,
    newCallId: () => timeOrderedId("call", now()),
    device: directory.byId,
    lockOf: enrollment.lockOf,
    link: fleet.link,
    hasSubscribers: () => bus.hasSubscribers(),
    onEvent: () => writes.relay.wake(),
    onEnded: metrics.ended,
  });
  parts.defer(() => calls.close());
  parts.defer(
    endCallsOfRevoked({
      running: calls.running,
      tokenStatuses,
      onError: (err) => logger.warn({ err }, "whether tokens were revoked cannot be found out"),
    }),
  );
  parts.defer(() => calls.drain(DRAIN_MS));
  const claimer = createClaimer({
    ownership,
    store,
    membership: cluster.membership,
    catchUp: fleet.catchUp,
    owned: calls.owned,
    resume: calls.resume,
    send: calls.sendOutcome,
    logger,
    everyMs: cluster.lookMs,
  });
  parts.defer(() => claimer.close());
  // First of all: what waits for a device goes on after the next start.
  parts.defer(queue.close);
  return { calls, claimer };
}
