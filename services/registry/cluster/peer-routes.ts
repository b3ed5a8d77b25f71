import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import {
  type ForwardDeviceRequest,
  ForwardDeviceResponseSchema,
  PeerService,
} from "../../../gen/ts/reeve/cluster/v1/peer_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { StreamFactory } from "../../../lib/link/stream.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { gathered } from "./gathered.ts";

/** What this replica has for the others. */
export interface PeerPorts {
  /** A session of a device; undefined for one whose session this replica does not hold. */
  sharedDevice(deviceId: string): StreamFactory<ControlFrame, DeviceFrame> | undefined;
  /** The events of a call from its present state on; undefined for one that this replica does not own. */
  followOwned(callId: string, signal: AbortSignal): AsyncIterable<CallEvent[]> | undefined;
  cancelOwned(callId: string): void;
  /** There is something new in the database. */
  onWake(): void;
  /** Aborted when this replica is closing: the others go elsewhere. */
  closing: AbortSignal;
  /** Whether this replica listens with TLS: then peers show certificates. */
  isSecure: boolean;
}

/** The only service whose certificate may call: the registry itself. */
const PEER = "service/registry";

/** Registers PeerService. */
export function peerRoutes(ports: PeerPorts): (router: ConnectRouter) => void {
  const woken = gathered(ports.onWake);
  ports.closing.addEventListener("abort", woken.stop, { once: true });
  const signalOf = (context: HandlerContext): AbortSignal => {
    const { id } = principalOf(context);
    if (ports.isSecure && id !== PEER) throw identityRefused("role", id);
    return AbortSignal.any([context.signal, ports.closing]);
  };
  return (router) =>
    router.service(PeerService, {
      async *forwardDevice(requests, context) {
        const signal = signalOf(context);
        const incoming = requests[Symbol.asyncIterator]();
        const first = await incoming.next();
        const deviceId = first.done === true ? "" : first.value.deviceId;
        const share = ports.sharedDevice(deviceId);
        if (share === undefined) throw notHere("a session of the device", deviceId);
        for await (const frame of share(framesOf(incoming), signal))
          yield create(ForwardDeviceResponseSchema, { frame });
      },
      async *followCall({ callId }, context) {
        const events = ports.followOwned(callId, signalOf(context));
        if (events === undefined) throw notHere("the call", callId);
        for await (const batch of events) yield { events: batch };
      },
      cancelOwnedCall({ callId }, context) {
        signalOf(context);
        ports.cancelOwned(callId);
        return {};
      },
      wake(_request, context) {
        signalOf(context);
        woken();
        return {};
      },
    });
}

async function* framesOf(incoming: AsyncIterator<ForwardDeviceRequest>): AsyncGenerator<ControlFrame, void, void> {
  for await (const { frame } of { [Symbol.asyncIterator]: () => incoming }) if (frame !== undefined) yield frame;
}

function notHere(what: string, id: string): Error {
  return fault(ErrorReason.NOT_FOUND, { resource: id }, { message: `this replica does not hold ${what} ${id}` });
}
