import { createClient, type Transport } from "@connectrpc/connect";
import { DeviceAgentService } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { PolicyService } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import type { DeviceOpener } from "./devices/device-link.ts";
import type { PolicyOpener } from "./policy/policy-link.ts";

/** The way to a policy service in another process. */
export function policyOver(transport: Transport): PolicyOpener {
  const client = createClient(PolicyService, transport);
  return (requests, signal) => client.link(requests, { signal });
}

/** The way to a device agent in another process, or on another machine. */
export function deviceOver(transport: Transport): DeviceOpener {
  const client = createClient(DeviceAgentService, transport);
  return (requests, signal) => client.link(requests, { signal });
}
