import { create } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type DecisionRequest, DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import type { OfferedTool } from "../tools/offered.ts";
import type { GovernedCall } from "./governed-call.ts";
import { inputSchemaOf } from "./input-schema.ts";

/** What policy is asked about a call. */
export interface QuestionFacts {
  call: GovernedCall;
  device: KnownDevice;
  tool: OfferedTool;
  /** The caller's roles. */
  roles: readonly Role[];
  /** The canonical arguments. */
  args: Uint8Array;
  /** The longest it may run, in milliseconds. */
  timeoutMs: number;
  /** How often policy was asked about it before. Default 0. */
  delivery?: number;
  /** When it is asked. Default: when the call was received. */
  time?: Timestamp;
}

/**
 * The question about a call: everything that the decision depends on, as it is known now. An approval that the call has
 * already, its own or its fan-out's, is said to cover it.
 */
export function questionOf(facts: QuestionFacts): DecisionRequest {
  const { call, device, tool, delivery = 0, time = call.createTime } = facts;
  const { spec } = tool;
  return create(DecisionRequestSchema, {
    callId: call.id,
    principal: { id: call.spec.principalId, roles: [...facts.roles], name: call.spec.principalName },
    device: {
      id: device.id,
      name: device.name,
      labels: device.labels,
      mode: device.manifest.mode,
      manifestDigest: device.manifestDigest,
      sandbox: device.manifest.sandbox,
      platform: device.manifest.platform,
      roots: [...device.manifest.readRoots, ...device.manifest.writeRoots],
    },
    tool: {
      name: spec.name,
      capabilities: spec.capabilities,
      readOnly: spec.annotations.readOnly,
      destructive: spec.annotations.destructive,
      idempotent: spec.annotations.idempotent,
      openWorld: spec.annotations.openWorld,
      requiresApproval: tool.requiresApproval,
      schemaDigest: spec.schemaDigest,
      inputSchema: inputSchemaOf(spec),
    },
    arguments: facts.args,
    ingress: call.spec.ingress,
    ...(time && { time }),
    ...(facts.timeoutMs > 0 && { timeout: durationFromMs(facts.timeoutMs) }),
    purpose: call.spec.purpose,
    delivery,
    approvalId: call.status.approval?.id ?? "",
  });
}
