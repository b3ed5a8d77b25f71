import { randomBytes, randomUUID } from "node:crypto";
import { create, type JsonObject, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Signed } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type ExecuteCommand, ExecuteCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type Grant, GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { type BatchSigner, createBatchSigner } from "../../../lib/sign/batch.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import { generateSigningKey, type SigningKey } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";

export interface TestCall {
  tool: string;
  args?: JsonObject;
  /** Default a new one. */
  callId?: string;
}

/** The device that a grant is for. */
export interface TestAudience {
  deviceId: string;
  manifestDigest: string;
  tools: ReadonlyMap<string, Pick<ToolSpec, "schemaDigest" | "capabilities">>;
}

/** Stands in for policy in tests: signs whatever a test asks for. */
export interface TestGrants {
  /** Pin it on the device. */
  key: SigningKey;
  /** A good grant's fields for this call, with some of them changed. */
  fields(call: TestCall, changes?: MessageInitShape<typeof GrantSchema>): Grant;
  sign(grant: Grant): Promise<Signed>;
  /** A start of this call with its grant; changes are to the grant's fields. */
  start(call: TestCall, changes?: MessageInitShape<typeof GrantSchema>): Promise<ExecuteCommand>;
}

/** Grants for one device, valid from a second ago for a minute. */
export function createTestGrants(
  audience: TestAudience,
  options: { key?: SigningKey; now?: () => number } = {},
): TestGrants {
  const key = options.key ?? generateSigningKey();
  const now = options.now ?? Date.now;
  const signer: BatchSigner = createBatchSigner({ key, statementType: GRANT_TYPE });
  const grants: TestGrants = {
    key,
    fields: (call, changes = {}) =>
      create(GrantSchema, {
        version: 1,
        issuer: "test-policy",
        deviceId: audience.deviceId,
        callId: call.callId ?? randomUUID(),
        tool: call.tool,
        schemaDigest: audience.tools.get(call.tool)?.schemaDigest ?? "",
        capabilities: audience.tools.get(call.tool)?.capabilities ?? [],
        argsDigest: sha256Hex(argumentBytes(call)),
        manifestDigest: audience.manifestDigest,
        principalId: "test-principal",
        notBefore: timestampFromMs(now() - 1000),
        expireTime: timestampFromMs(now() + 59_000),
        grantId: randomBytes(16).toString("hex"),
        timeout: durationFromMs(30_000),
        ...changes,
      }),
    sign: (grant) => signer.sign(toBinary(GrantSchema, grant)),
    async start(call, changes) {
      const callId = call.callId ?? randomUUID();
      const grant = await grants.sign(grants.fields({ ...call, callId }, changes));
      return create(ExecuteCommandSchema, { callId, tool: call.tool, arguments: argumentBytes(call), grant });
    },
  };
  return grants;
}

/** The canonical bytes of a call's arguments. */
export function argumentBytes(call: TestCall): Uint8Array {
  return Buffer.from(canonicalJson(call.args ?? {}));
}
