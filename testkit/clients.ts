import { type Client, createClient } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../client/registry.ts";
import { ApprovalService } from "../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { FanOutService } from "../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { PolicyService } from "../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { ScheduleService } from "../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";

/** The clients of a caller with one token. */
export interface Caller {
  registry: RegistryClient;
  fanOut: Client<typeof FanOutService>;
  schedules: Client<typeof ScheduleService>;
  policy: Client<typeof PolicyService>;
  approvals: Client<typeof ApprovalService>;
  audit: Client<typeof AuditService>;
}

/** Clients over real sockets, with a bearer token. @param ca the authority of the services, PEM; undefined without TLS. */
export function callerOf(
  urls: { registry: { url: string }; policy: { url: string } },
  token: string,
  ca?: string,
): Caller {
  const transport = (baseUrl: string) => createServiceTransport({ baseUrl, token, ...(ca !== undefined && { ca }) });
  const [registry, policy] = [transport(urls.registry.url), transport(urls.policy.url)];
  return {
    registry: registryClient(registry),
    fanOut: createClient(FanOutService, registry),
    schedules: createClient(ScheduleService, registry),
    policy: createClient(PolicyService, policy),
    approvals: createClient(ApprovalService, policy),
    audit: createClient(AuditService, policy),
  };
}
