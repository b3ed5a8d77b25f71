import { describe, expect, test } from "vitest";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { JsonSchema } from "../../../lib/tool/json-schema.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { schemaDigest } from "../../../lib/toolschema/digest.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { prepareAll } from "../fan-out/prepare.ts";
import type { OfferedTool } from "../tools/offered.ts";
import { questionOf } from "./question.ts";
import type { CallRequest, ReceivedCall } from "./receive.ts";

const exec = builtInTools().get("exec");
if (exec === undefined) throw new Error("no exec");
const builtIn: OfferedTool = { ...exec, requiresApproval: false };
const device = {
  id: "dev-1",
  name: "nas",
  labels: {},
  manifest: { readRoots: ["/var/log"], writeRoots: ["/srv"] },
  manifestDigest: "m",
} as unknown as KnownDevice;

/** A tool that a device announces, with such an input. */
function announced(inputSchema: JsonSchema): OfferedTool {
  const spec = { ...builtIn.spec, name: "vault:open", inputSchema, schemaDigest: schemaDigest(inputSchema) };
  return { ...builtIn, spec };
}

const schema = {
  type: "object",
  properties: { password: { type: "string", writeOnly: true }, name: { type: "string" } },
};

function ask(tool: OfferedTool, delivery = 0) {
  const call = testCall({ id: "c", tool: tool.spec.name });
  return questionOf({ call, device, tool, roles: [Role.AGENT], args: Buffer.from("{}"), timeoutMs: 1, delivery });
}

test("the question brings the folders that the device grants", () => {
  expect(ask(builtIn).device?.roots).toEqual(["/var/log", "/srv"]);
});

describe("the question about a call of an announced tool", () => {
  test.each([0, 1])("brings the schema that the digest is of, at delivery %d", (delivery) => {
    const { tool } = ask(announced(schema), delivery);
    expect(sha256Hex(tool?.inputSchema ?? "")).toBe(tool?.schemaDigest);
    expect(JSON.parse(Buffer.from(tool?.inputSchema ?? []).toString())).toEqual(schema);
  });

  test("brings it for a whole fan-out", async () => {
    const tool = announced(schema);
    const receive = (): ReceivedCall => ({ question: ask(tool) }) as ReceivedCall;
    const requests = ["a", "b"].map((name) => ({ device: { id: name, name }, request: {} as CallRequest }));
    const whole = await prepareAll("f", requests, receive);
    expect(sha256Hex(whole.tool?.inputSchema ?? "")).toBe(tool.spec.schemaDigest);
  });

  test("leaves out a schema that is too large for policy, which shows no arguments then", () => {
    const { tool } = ask(announced({ ...schema, description: "ü".repeat(40_000) }));
    expect(tool?.inputSchema).toHaveLength(0);
  });
});

test("the question about a call of a built-in tool brings no schema: policy has it", () => {
  expect(ask(builtIn).tool?.inputSchema).toHaveLength(0);
});
