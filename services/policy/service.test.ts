import { fromBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Decision, DecisionRequest } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { Effect } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { faultDetail, reasonOf } from "../../lib/fault/fault.ts";
import { createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { createKeyring, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../lib/sign/payload-types.ts";
import { runSql } from "./testing/run-sql.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "./testing/test-policy.ts";
import { testRequest } from "./testing/test-requests.ts";

const running: TestPolicy[] = [];

async function start(...options: Parameters<typeof startTestPolicy>): Promise<TestPolicy> {
  const policy = await startTestPolicy(...options);
  running.push(policy);
  return policy;
}

afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

async function authorize(policy: TestPolicy, request: DecisionRequest): Promise<Decision> {
  const { decision } = await policy.policy.authorize({ request });
  if (!decision) throw new Error("no decision");
  return decision;
}

async function recordsOf(policy: TestPolicy, callId: string) {
  const { entries } = await policy.audit.listRecords({ callId });
  return entries.map((entry) => entry.record?.event);
}

describe("authorize", () => {
  it("names in the grant every capability that the tool needs, and refuses a tool that states none", async () => {
    const policy = await start();
    const request = testRequest({ tool: "exec", args: { argv: ["df", "-h"] } });
    if (request.tool === undefined) throw new Error("the request has no tool");
    request.tool.capabilities = ["shell.exec", "shell.input"];
    const { outcome } = await authorize(policy, request);
    if (outcome.case !== "permit") throw new Error("not permitted");
    const { capabilities } = fromBinary(GrantSchema, outcome.value.grant?.statement ?? new Uint8Array());
    expect(capabilities).toEqual(["shell.exec", "shell.input"]);
    for (const none of [[], [""]]) {
      request.tool.capabilities = none;
      await expect(authorize(policy, { ...request, callId: "call-2" })).rejects.toThrow(/capabilities/);
    }
  });

  it("permits with a signed grant for exactly this call, and records it", async () => {
    const policy = await start();
    const request = testRequest({ tool: "exec", args: { argv: ["df", "-h"] } });
    const decision = await authorize(policy, request);

    expect(decision.ruleIds).toEqual(["exec/agent-machine"]);
    if (decision.outcome.case !== "permit") throw new Error("not permitted");
    const { publicKey } = await policy.keys.getGrantKey({});
    const keyring = createKeyring([verifyKeyFromRaw(publicKey)]);
    const verified = createBatchVerifier({ keyring, statementType: GRANT_TYPE }).verify(decision.outcome.value.grant);
    if (!verified.ok) throw new Error(verified.kind);
    const grant = fromBinary(GrantSchema, verified.statement);
    expect(grant).toMatchObject({
      version: 1,
      issuer: "reeve-policy",
      callId: request.callId,
      deviceId: request.device?.id,
      tool: "exec",
      schemaDigest: request.tool?.schemaDigest,
      manifestDigest: request.device?.manifestDigest,
      principalId: "agent-1",
      approvalId: "",
      approverIds: [],
      timeout: durationFromMs(60_000),
    });
    expect(grant.grantId).toMatch(/^[0-9a-f]{32}$/);
    expect(Number(grant.expireTime?.seconds) - Number(grant.notBefore?.seconds)).toBe(60);

    const [record] = await recordsOf(policy, request.callId);
    expect(record?.value).toMatchObject({
      decision: DecisionKind.PERMIT,
      grantId: grant.grantId,
      argsDigest: grant.argsDigest,
      functionId: "capability_exec_ts_shell",
      ingress: Ingress.RPC,
    });
  });

  it("denies what no rule allows, and records it", async () => {
    const policy = await start();
    const request = testRequest({ tool: "weather:now" });
    const decision = await authorize(policy, request);
    expect(decision.outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.POLICY_DENIED } });
    expect(await recordsOf(policy, request.callId)).toMatchObject([
      { value: { decision: DecisionKind.DENIAL, grantId: "" } },
    ]);
  });

  it("denies what a rule denies, with the rule's message", async () => {
    const policy = await start();
    const decision = await authorize(policy, testRequest({ tool: "fs.read", args: { path: "/etc/shadow" } }));
    expect(decision.ruleIds).toEqual(["read-only", "fs.read/agent-secrets"]);
    expect(decision.outcome.value).toMatchObject({ userMessage: "This looks like a place where secrets are kept." });
  });

  it("blocks what the blocklist holds, for every principal", async () => {
    const policy = await start();
    const request = testRequest({ tool: "exec", args: { argv: ["rm", "-rf", "/"] }, roles: [Role.OPERATOR] });
    const decision = await authorize(policy, request);
    expect(decision.outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.POLICY_BLOCKED } });
    expect(decision.ruleIds[0]).toBe("blocklist/delete-system");
  });

  it("holds whatever the device puts under approval, even where a rule allows it", async () => {
    const policy = await start();
    const decision = await authorize(policy, testRequest({ tool: "device.ping", requiresApproval: true }));
    expect(decision.outcome.case).toBe("hold");
    expect(decision.ruleIds).toEqual(["mode/requires-approval", "read-only"]);
  });

  it("returns the same decision for the same call, byte for byte, and records it once", async () => {
    const policy = await start();
    const request = testRequest({ tool: "device.ping", callId: "again" });
    const first = await authorize(policy, request);
    const repeats = await Promise.all([1, 2, 3].map(() => authorize(policy, request)));
    for (const repeat of repeats) expect(repeat).toEqual(first);
    expect(await recordsOf(policy, "again")).toHaveLength(1);
  });

  it("decides once where the same call comes many times at once", async () => {
    const policy = await start();
    const request = testRequest({ tool: "device.ping", callId: "at-once" });
    const decisions = await Promise.all([1, 2, 3, 4].map(() => authorize(policy, request)));
    for (const decision of decisions) expect(decision).toEqual(decisions[0]);
    expect(await recordsOf(policy, "at-once")).toHaveLength(1);
  });

  it("refuses a call id that was used for other arguments", async () => {
    const policy = await start();
    await authorize(policy, testRequest({ tool: "device.ping", callId: "reused", args: { text: "a" } }));
    const other = testRequest({ tool: "device.ping", callId: "reused", args: { text: "b" } });
    const error = await authorize(policy, other).catch((e: unknown) => e);
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.CALL_ID_REUSED, metadata: { call_id: "reused" } });
    expect(await recordsOf(policy, "reused")).toHaveLength(1);
  });

  it("keeps decisions over a restart", async () => {
    const before = await start();
    const request = testRequest({ tool: "device.ping", callId: "kept" });
    const decision = await authorize(before, request);
    await before.stop();
    const after = await start({ stateDir: before.stateDir });
    expect(await authorize(after, request)).toEqual(decision);
  });

  it.each([
    ["white space", '{"text": "a"}', "arguments"],
    ["a repeated key", '{"text":"a","text":"b"}', "arguments.text"],
    ["keys out of order", '{"b":1,"a":2}', "arguments"],
    ["another number form", '{"a":1.0}', "arguments"],
    ["a lone surrogate", '{"a":"\\ud800"}', "arguments.a"],
    ["no object", "[]", "arguments"],
    ["no JSON", "{", "arguments"],
  ])("refuses arguments with %s", async (_, text, field) => {
    const policy = await start();
    const request = testRequest({ tool: "device.ping", argumentBytes: new TextEncoder().encode(text) });
    const error = await authorize(policy, request).catch((e: unknown) => e);
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field } });
  });

  it("grants nothing when the audit log cannot be written", async () => {
    const policy = await start();
    await runSql(policy, "drop table records");
    for (const tool of ["device.ping", "shell.eval", "weather:now"]) {
      const error = await authorize(policy, testRequest({ tool, args: {} })).catch((e: unknown) => e);
      expect(reasonOf(error)).toBe(ErrorReason.POLICY_UNAVAILABLE);
    }
    expect((await policy.approvals.listApprovals({})).approvals).toEqual([]);
  });
});

describe("explain", () => {
  it("says what every rule of the tool says, and records nothing", async () => {
    const policy = await start();
    const request = testRequest({ tool: "exec", args: { argv: ["rm", "a"] } });
    const explained = await policy.policy.explain({ request });
    expect(explained).toMatchObject({ effect: Effect.HOLD, message: expect.stringContaining("person") });
    const matched = explained.rules.filter((rule) => rule.matched).map((rule) => rule.ruleId);
    expect(matched).toEqual(["exec/agent-other"]);
    expect(explained.rules.length).toBeGreaterThan(3);
    expect(await recordsOf(policy, request.callId)).toEqual([]);
  });
});

describe("getPolicy", () => {
  it("returns the text active and its version", async () => {
    const policy = await start();
    const answer = await policy.policy.getPolicy({});
    expect(answer.text).toContain("version: 1");
    expect(answer.version).toMatch(/^[0-9a-f]{16}$/);
    expect(answer.refused).toBe("");
  });
});
