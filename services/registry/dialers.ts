import { createClient, type Transport } from "@connectrpc/connect";
import { DeviceAgentService } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { PolicyService } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { linkFrames, toDevice } from "../../lib/link/device-frames.ts";
import { type FramedOptions, framedDialer } from "../../lib/link/framed.ts";
import type { DeviceDialer } from "./devices/device-link.ts";
import type { PolicyDialer } from "./policy-client/policy-link.ts";

/** The way to policy, which may be several services that share a database: each new stream goes to the next of them. */
export function policyOver(transport: Transport, ...others: Transport[]): PolicyDialer {
  const clients = [transport, ...others].map((one) => createClient(PolicyService, one));
  // Not all registries begin with the same one.
  let turn = Math.floor(Math.random() * clients.length);
  return (requests, signal) => {
    const [first = createClient(PolicyService, transport)] = clients.slice(turn++ % clients.length);
    return first.exchange(requests, { signal });
  };
}

/** The way to a device agent in another process, or on another machine. A device without framing gets none. */
export function deviceOver(transport: Transport, options: FramedOptions = {}): DeviceDialer {
  const client = createClient(DeviceAgentService, transport);
  return framedDialer(
    linkFrames((requests, signal) => client.link(requests, { signal })),
    toDevice,
    options,
  );
}
