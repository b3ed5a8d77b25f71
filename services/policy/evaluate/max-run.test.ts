import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, expect, test } from "vitest";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { OPERATOR, removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "../testing/test-policy.ts";
import { testRequest } from "../testing/test-requests.ts";

const running: TestPolicy[] = [];
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

const RULES = `version: 1
rules:
  - { id: short, effect: allow, tools: [exec], obligations: { max_run: 60s }, message: m, when: 'args.argv[0] == "free"' }
  - { id: shorter, effect: allow, tools: [exec], obligations: { max_run: 10s }, message: m, when: 'args.argv[0] in ["free", "df"]' }
  - { id: free, effect: allow, tools: [exec], message: m, when: '"operator" in principal.roles' }
  - { id: wait, effect: hold, tools: [exec], message: m, when: 'args.argv[0] == "systemctl"' }
`;

async function start(text?: string): Promise<TestPolicy> {
  const policyFile = join(await testFolder(), "policy.yaml");
  if (text !== undefined) await writeFile(policyFile, text);
  const policy = await startTestPolicy(text === undefined ? {} : { policyFile });
  running.push(policy);
  return policy;
}

function request(program: string, timeoutMs: number, roles: Role[] = [Role.AGENT]): DecisionRequest {
  return { ...testRequest({ tool: "exec", args: { argv: [program] }, roles }), timeout: durationFromMs(timeoutMs) };
}

async function grantFor({ policy }: TestPolicy, asked: DecisionRequest) {
  const { decision } = await policy.authorize({ request: asked });
  if (decision?.outcome.case !== "permit") throw new Error(`not permitted: ${decision?.outcome.case}`);
  const grant = fromBinary(GrantSchema, decision.outcome.value.grant?.statement ?? new Uint8Array());
  return { ...grant, obligations: grant.obligations };
}

test("a grant of what a rule allows by itself ends at the rule's max_run, whatever the caller asks for", async () => {
  const policy = await start(RULES);
  expect(await grantFor(policy, request("df", 3_600_000))).toMatchObject({
    timeout: durationFromMs(10_000),
    obligations: { maxRun: durationFromMs(10_000) },
  });
  expect(await grantFor(policy, request("df", 0))).toMatchObject({
    timeout: durationFromMs(10_000),
    obligations: { maxRun: durationFromMs(10_000) },
  });
  expect(await grantFor(policy, request("df", 5000))).toMatchObject({
    timeout: durationFromMs(5000),
    obligations: undefined,
  });
});

test("of several rules that allow a call the strictest obligation counts", async () => {
  const policy = await start(RULES);
  expect(await grantFor(policy, request("free", 3_600_000))).toMatchObject({ timeout: durationFromMs(10_000) });
  const operators = await grantFor(policy, request("free", 3_600_000, [Role.OPERATOR]));
  expect(operators).toMatchObject({
    timeout: durationFromMs(10_000),
    obligations: { maxRun: durationFromMs(10_000) },
    isOperator: true,
  });
});

test("what a person approved runs as long as they were shown", async () => {
  const policy = await start(RULES);
  const asked = request("systemctl", 3_600_000);
  const { decision } = await policy.policy.authorize({ request: asked });
  if (decision?.outcome.case !== "hold") throw new Error("not held");
  const { approvalId } = decision.outcome.value;
  const { approval } = await policy.approvals.getApproval({ approvalId });
  await policy.approvals.approve({ approvalId, summaryDigest: approval?.spec?.summaryDigest ?? "" });
  const grant = await grantFor(policy, { ...asked, delivery: 1, approvalId });
  expect(grant).toMatchObject({
    timeout: durationFromMs(3_600_000),
    obligations: undefined,
    approverIds: [OPERATOR.id],
  });
});

test("only an operator who is no model asks as one for places on a device", async () => {
  const policy = await start(RULES);
  const isOperator = async (asked: DecisionRequest) => (await grantFor(policy, asked)).isOperator;
  expect(await isOperator(request("df", 0))).toBe(false);
  expect(await isOperator(request("df", 0, [Role.OPERATOR]))).toBe(true);
  expect(await isOperator({ ...request("df", 0, [Role.OPERATOR]), ingress: Ingress.LLM })).toBe(false);
});

test("an agent that only looks around keeps no place for longer than a minute by the policy that is shipped", async () => {
  const policy = await start();
  const free = testRequest({ tool: "exec", args: { argv: ["free", "-s", "60"] } });
  expect(await grantFor(policy, { ...free, timeout: durationFromMs(3_600_000) })).toMatchObject({
    obligations: { maxRun: durationFromMs(60_000) },
  });
  const operators = { ...testRequest({ tool: "exec", args: { argv: ["free", "-s", "60"] }, roles: [Role.OPERATOR] }) };
  expect(await grantFor(policy, { ...operators, timeout: durationFromMs(3_600_000) })).toMatchObject({
    timeout: durationFromMs(3_600_000),
  });
});
