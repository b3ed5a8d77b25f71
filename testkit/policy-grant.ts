import { create, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { type ExecuteCommand, ExecuteCommandSchema } from "../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { type Decision, DecisionRequestSchema } from "../gen/ts/reeve/policy/v1/decision_pb.ts";
import { PolicyService } from "../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { canonicalJson } from "../lib/sign/canonical.ts";
import { callerOf } from "./clients.ts";
import type { ControlPlane } from "./control-plane.ts";

/** A call as policy is asked about it. */
export interface AskedCall {
  callId: string;
  tool: string;
  /** In the form that canonical ProtoJSON has: no zero values. */
  params: JsonObject;
  role: Role;
}

/** What policy says of a call, as another service of the control plane would receive it: past the registry. */
export async function askPolicy(plane: ControlPlane, { callId, tool, params, role }: AskedCall): Promise<Decision> {
  const { registry } = callerOf(plane, plane.tokens.operator);
  const { device } = await registry.getDevice({ device: "this" });
  const facts = (await registry.listTools({ device: "this" })).tools.find(({ name }) => name === tool);
  if (device === undefined || facts === undefined) throw new Error(`the device has no tool ${tool}`);
  const { id, name, labels, mode, manifestDigest, sandbox } = device;
  const { capabilities, schemaDigest, requiresApproval, annotations } = facts;
  const { readOnly = false, destructive = false, idempotent = false, openWorld = false } = annotations ?? {};
  const request = create(DecisionRequestSchema, {
    callId,
    principal: { id: "caller", roles: [role] },
    device: { id, name, labels, mode, manifestDigest, sandbox },
    tool: { name: tool, capabilities, schemaDigest, requiresApproval, readOnly, destructive, idempotent, openWorld },
    arguments: Buffer.from(canonicalJson(params)),
    time: timestampNow(),
    timeout: durationFromMs(60_000),
  });
  const transport = createServiceTransport({ baseUrl: plane.policy.url, token: plane.tokens.service });
  try {
    const { decision } = await createClient(PolicyService, transport).authorize({ request });
    if (decision === undefined) throw new Error("policy sent no decision");
    return decision;
  } finally {
    transport.close();
  }
}

/** The start that a permit lets a device be asked for; without a grant where policy gave none. */
export function startOf({ callId, tool, params }: AskedCall, { outcome }: Decision): ExecuteCommand {
  const grant = outcome.case === "permit" ? outcome.value.grant : undefined;
  return create(ExecuteCommandSchema, {
    callId,
    tool,
    arguments: Buffer.from(canonicalJson(params)),
    ...(grant && { grant }),
  });
}
