import { create, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type DecisionRequest, DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";

/** What a test says of a request; the rest is an agent on a laptop. */
export interface TestRequest {
  tool: string;
  args?: JsonObject;
  callId?: string;
  principalId?: string;
  roles?: Role[];
  requiresApproval?: boolean;
  purpose?: string;
  timeMs?: number;
  /** The schema of a tool that is not built in, and its digest. */
  inputSchema?: JsonObject;
  /** In the place of the canonical bytes of args. */
  argumentBytes?: Uint8Array;
}

let calls = 0;

/** A whole request. Without a call id it is a new call. */
export function testRequest(test: TestRequest): DecisionRequest {
  const tool = toolByName(test.tool);
  calls += 1;
  const inputSchema = new TextEncoder().encode(test.inputSchema ? canonicalJson(test.inputSchema) : "");
  return create(DecisionRequestSchema, {
    callId: test.callId ?? `call-${calls}`,
    principal: { id: test.principalId ?? "agent-1", roles: test.roles ?? [Role.AGENT] },
    device: {
      id: "dev-0123456789abcdef",
      name: "laptop",
      labels: { role: "web" },
      mode: Mode.USER,
      manifestDigest: sha256Hex("manifest"),
      sandbox: SandboxLevel.NONE,
    },
    tool: {
      name: test.tool,
      capabilities: tool?.capabilities ?? [test.tool],
      readOnly: tool?.annotations.readOnly ?? false,
      destructive: tool?.annotations.destructive ?? false,
      idempotent: tool?.annotations.idempotent ?? false,
      openWorld: tool?.annotations.openWorld ?? false,
      requiresApproval: test.requiresApproval ?? false,
      schemaDigest: test.inputSchema ? sha256Hex(inputSchema) : (tool?.schemaDigest ?? sha256Hex(test.tool)),
      inputSchema,
    },
    arguments: test.argumentBytes ?? new TextEncoder().encode(canonicalJson(test.args ?? {})),
    ingress: Ingress.RPC,
    time: timestampFromMs(test.timeMs ?? Date.parse("2026-11-01T12:00:00Z")),
    timeout: durationFromMs(60_000),
    purpose: test.purpose ?? "",
  });
}
