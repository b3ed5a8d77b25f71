import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { NOT_SHOWN } from "../../../lib/tool/redact.ts";
import { approve, awaitDecision, holdingPolicy } from "../testing/test-approvals.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "../testing/test-policy.ts";
import { testRequest } from "../testing/test-requests.ts";

const SECRET = "hunter2-correct-horse";
const schema = {
  type: "object",
  properties: { user: { type: "string" }, password: { type: "string", writeOnly: true } },
  additionalProperties: false,
};
const asked = { tool: "vault:open", args: { user: "ann", password: SECRET } };

const running: TestPolicy[] = [];
let policyFile = "";

async function start(): Promise<TestPolicy> {
  const policy = await startTestPolicy({ policyFile });
  running.push(policy);
  return policy;
}

beforeAll(async () => {
  policyFile = await holdingPolicy("10m");
});
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

async function held({ policy, approvals }: TestPolicy, request: DecisionRequest) {
  const { decision } = await policy.authorize({ request });
  if (decision?.outcome.case !== "hold") throw new Error("not held");
  const { approval } = await approvals.getApproval({ approvalId: decision.outcome.value.approvalId });
  if (approval?.spec === undefined) throw new Error("no approval");
  return { approval, spec: approval.spec };
}

/** The call by itself, asked about again for its device, and as one fan-out. */
const ways: [string, (request: DecisionRequest) => DecisionRequest][] = [
  ["a call", (request) => request],
  ["a call that is asked about again", (request) => ({ ...request, delivery: 1 })],
  ["a fan-out", (request) => ({ ...request, devices: request.device ? [request.device] : [] })],
];

describe.each(ways)("the secrets of an announced tool, in %s,", (_, asWay) => {
  it("are not shown where the schema came along", async () => {
    const { spec } = await held(await start(), asWay(testRequest({ ...asked, inputSchema: schema })));
    expect(spec.arguments).toEqual({ user: "ann", password: "[redacted]" });
    expect(spec.summary).toContain('  password: "[redacted]"\n  user: "ann"\n');
    expect(spec.summary).not.toContain(SECRET);
  });

  it("are not shown where it did not, and neither is any other argument", async () => {
    const { spec } = await held(await start(), asWay(testRequest(asked)));
    expect(spec.arguments).toEqual({ note: NOT_SHOWN });
    expect(spec.summary).toContain(
      `Arguments:\n  ${NOT_SHOWN}\nDigest:    SHA-256 of all arguments ${spec.argsDigest}`,
    );
    expect(spec.summary).not.toContain("ann");
  });
});

it("are nowhere in policy's folder, before and after the call was released", async () => {
  const policy = await start();
  const { approval } = await held(policy, testRequest({ ...asked, inputSchema: schema }));
  await approve(policy, approval);
  expect((await awaitDecision(policy, approval.id)).outcome.case).toBe("permit");
  await policy.stop();
  for (const name of await readdir(policy.stateDir)) {
    expect((await readFile(join(policy.stateDir, name))).includes(SECRET), name).toBe(false);
  }
});

it("a built-in tool in a version that is not known here shows no arguments", async () => {
  const request = testRequest({ tool: "shell.eval", args: { command: "ls" } });
  const tool = request.tool && { ...request.tool, schemaDigest: sha256Hex("newer") };
  const { spec } = await held(await start(), { ...request, ...(tool && { tool }) });
  expect(spec.summary).toContain(NOT_SHOWN);
});

it.each([
  ["is not the one that the digest is of", { ...schema, properties: {} }, "digest"],
  ["is too large", { ...schema, description: "x".repeat(65_536) }, "max_len"],
  ["is no schema", ["a"] as never, "schema"],
])("a schema that %s is refused", async (_, inputSchema, rule) => {
  const { policy } = await start();
  const right = testRequest({ ...asked, inputSchema: schema });
  const request = testRequest({ ...asked, inputSchema });
  if (rule === "digest" && request.tool) request.tool.schemaDigest = right.tool?.schemaDigest ?? "";
  const detail = faultDetail(await policy.authorize({ request }).catch((e: unknown) => e));
  expect(detail).toMatchObject({ reason: ErrorReason.INVALID_INPUT });
  expect(JSON.stringify(detail)).toMatch(/input_?schema/i);
});

it("the same question is the same, with its schema and without", async () => {
  const { policy } = await start();
  const request = testRequest({ ...asked, inputSchema: schema });
  const first = await policy.authorize({ request });
  const tool = request.tool && { ...request.tool, inputSchema: new Uint8Array() };
  expect(await policy.authorize({ request: { ...request, ...(tool && { tool }) } })).toEqual(first);
});
