import { joinCluster, type Membership } from "../cluster/membership.ts";
import { createPeers, type Peers } from "../cluster/peers.ts";
import type { Setup } from "../options.ts";
import type { State } from "./state.ts";

/** This registry among its replicas. */
export interface Cluster {
  membership: Membership;
  /** The other replicas; undefined where there are no others, or where they cannot be reached. */
  peers: Peers | undefined;
  /** How often to look for what other replicas have changed, in milliseconds; 0 where there are no others. */
  lookMs: number;
}

/** How long a replica that says nothing keeps what it holds, in milliseconds, unless the configuration says otherwise. */
const LEASE_MS = 5000;

/** Joins the other replicas, until `parts` are closed. */
export async function openCluster(
  { config, peerTransport, logger, now }: Setup,
  { db, self, alone }: State,
  parts: AsyncDisposableStack,
): Promise<Cluster> {
  const { leaseMs = LEASE_MS } = config;
  const membership = await joinCluster({ db, self, logger, ttlMs: leaseMs, renewMs: leaseMs * 0.3, now });
  const peers =
    alone || peerTransport === undefined ? undefined : createPeers({ membership, transportTo: peerTransport });
  // After this replica has left, so that the others find it gone when they look.
  parts.defer(() => peers?.close());
  parts.defer(() => membership.close());
  return { membership, peers, lookMs: alone ? 0 : leaseMs / 5 };
}
