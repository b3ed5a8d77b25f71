import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { CallService } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { CapabilityService } from "../gen/ts/reeve/capability/v1/capability_service_pb.ts";
import { DeviceService } from "../gen/ts/reeve/device/v1/device_service_pb.ts";
import { PrincipalService } from "../gen/ts/reeve/principal/v1/principal_service_pb.ts";
import { ToolService } from "../gen/ts/reeve/tool/v1/tool_service_pb.ts";

/** The registry's services for callers, as one client. */
export type RegistryClient = Client<typeof CallService> &
  Client<typeof CapabilityService> &
  Client<typeof DeviceService> &
  Client<typeof PrincipalService> &
  Client<typeof ToolService>;

/** A client of the registry's services for callers over one transport. */
export function registryClient(transport: Transport): RegistryClient {
  return {
    ...createClient(CallService, transport),
    ...createClient(CapabilityService, transport),
    ...createClient(DeviceService, transport),
    ...createClient(PrincipalService, transport),
    ...createClient(ToolService, transport),
  };
}
