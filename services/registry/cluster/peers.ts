import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import {
  type ForwardDeviceRequest,
  ForwardDeviceRequestSchema,
  PeerService,
} from "../../../gen/ts/reeve/cluster/v1/peer_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { StreamFactory } from "../../../lib/link/stream.ts";
import type { ServiceTransport } from "../../../lib/rpc-client/transport.ts";
import { gathered } from "./gathered.ts";
import type { Membership } from "./membership.ts";

/** The other replicas, as this one calls them. */
export interface Peers {
  /** A session of a device at the replica that holds it. Throws NOT_READY where that replica has no address. */
  forwardDevice(replicaId: string, deviceId: string): StreamFactory<ControlFrame, DeviceFrame>;
  /**
   * Follows a call at the replica that owns it, from its present state on; when `canceled` aborts, that replica cancels it.
   * Resolves when there is no more to report, for whatever reason. Undefined for a replica that cannot be asked.
   */
  followCall(
    owner: string,
    callId: string,
    notify: (event: CallEvent) => Promise<void> | undefined,
    canceled: AbortSignal,
  ): Promise<void> | undefined;
  /** Has the others read what has changed in the database. Lost where they are not reached: they poll, too. */
  wake(): void;
  /** Why a replica was not reached last; undefined for one that was, or that was not tried. */
  problemOf(replicaId: string): string | undefined;
  /** Wakes the others once more, then ends all connections. */
  close(): Promise<void>;
}

export interface PeersOptions {
  membership: Membership;
  /** Connects to a replica as this registry. */
  transportTo(address: string): ServiceTransport;
}

/** A server takes 512 streams on a connection, and a replica may forward a thousand devices. */
const STREAMS_PER_CONNECTION = 256;

/** How long a peer may take to note that it is to look, in milliseconds. */
const WAKE_TIMEOUT_MS = 1000;

interface Connection {
  address: string;
  transport: ServiceTransport;
  client: Client<typeof PeerService>;
  streams: number;
}

/** No connections yet: each is made when it is first needed. */
export function createPeers({ membership, transportTo }: PeersOptions): Peers {
  const connections = new Map<string, Connection[]>();
  const problems = new Map<string, string>();

  const connectionTo = (replicaId: string, address: string): Connection => {
    const all = connections.get(replicaId) ?? [];
    connections.set(replicaId, all);
    const free = all.find((one) => one.address === address && one.streams < STREAMS_PER_CONNECTION);
    if (free !== undefined) return free;
    const transport = transportTo(address);
    const made = { address, transport, client: createClient(PeerService, transport), streams: 0 };
    all.push(made);
    return made;
  };
  /** A stream to a replica, counted on its connection. */
  async function* stream<T>(
    replicaId: string,
    address: string,
    open: (client: Client<typeof PeerService>) => AsyncIterable<T>,
    signal?: AbortSignal,
  ): AsyncGenerator<T, void, void> {
    const connection = connectionTo(replicaId, address);
    connection.streams++;
    try {
      for await (const message of open(connection.client)) {
        problems.delete(replicaId);
        yield message;
      }
    } catch (error: unknown) {
      if (signal?.aborted !== true)
        problems.set(replicaId, `${address}: ${error instanceof Error ? error.message : String(error)}`);
      throw error;
    } finally {
      connection.streams--;
    }
  }
  const clientOf = (replicaId: string): Client<typeof PeerService> | undefined => {
    const address = membership.addressOf(replicaId);
    return address === undefined ? undefined : connectionTo(replicaId, address).client;
  };
  const wakeAll = (): Promise<unknown> =>
    Promise.allSettled(
      membership.others().map(async (replicaId) => clientOf(replicaId)?.wake({}, { timeoutMs: WAKE_TIMEOUT_MS })),
    );
  const wake = gathered(() => void wakeAll());
  const stopWatching = membership.onChange(() => {
    for (const [replicaId, all] of connections) {
      if (membership.isAlive(replicaId)) continue;
      connections.delete(replicaId);
      problems.delete(replicaId);
      for (const { transport } of all) transport.close();
    }
  });

  return {
    forwardDevice: (replicaId, deviceId) =>
      async function* forward(requests, signal) {
        // One that has just started may have said where it listens since the last look.
        if (membership.addressOf(replicaId) === undefined) await membership.look();
        const address = membership.addressOf(replicaId);
        if (address === undefined) {
          problems.set(replicaId, "it advertises no address");
          throw fault(ErrorReason.NOT_READY, {}, { message: `the replica ${replicaId} advertises no address` });
        }
        const open = (client: Client<typeof PeerService>) =>
          client.forwardDevice(framesTo(deviceId, requests), { signal });
        const responses = stream(replicaId, address, open, signal);
        for await (const { frame } of responses) if (frame !== undefined) yield frame;
      },
    followCall(owner, callId, notify, canceled) {
      const address = membership.addressOf(owner);
      if (owner === membership.self || address === undefined || !membership.isAlive(owner)) return undefined;
      const cancel = () =>
        void clientOf(owner)
          ?.cancelOwnedCall({ callId })
          .catch(() => undefined);
      const follow = async (): Promise<void> => {
        canceled.addEventListener("abort", cancel, { once: true });
        if (canceled.aborted) cancel();
        try {
          // At the pace of the reader here: the other replica has a program wait for it.
          for await (const { events } of stream(owner, address, (client) => client.followCall({ callId })))
            for (const event of events) await notify(event);
        } catch {
          // The follower reads the database next, and asks again.
        } finally {
          canceled.removeEventListener("abort", cancel);
        }
      };
      return follow();
    },
    wake,
    problemOf: (replicaId) => problems.get(replicaId),
    async close() {
      wake.stop();
      stopWatching();
      // At once: the others find out what this replica has let go of.
      await wakeAll();
      for (const all of connections.values()) for (const { transport } of all) transport.close();
      connections.clear();
    },
  };
}

async function* framesTo(
  deviceId: string,
  requests: AsyncIterable<ControlFrame>,
): AsyncGenerator<ForwardDeviceRequest, void, void> {
  yield create(ForwardDeviceRequestSchema, { deviceId });
  for await (const frame of requests) yield create(ForwardDeviceRequestSchema, { frame });
}
