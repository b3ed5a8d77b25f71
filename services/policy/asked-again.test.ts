import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type Approval, ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { eventually } from "../../testkit/eventually.ts";
import { openTestLink } from "./testing/test-link.ts";
import { OPERATOR, removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "./testing/test-policy.ts";
import { testRequest } from "./testing/test-requests.ts";

const running: TestPolicy[] = [];
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

const RULES = {
  hold: "{ id: all, effect: hold, message: Everything waits. }",
  deny: "{ id: none, effect: deny, message: Not any more. }",
  allow: "{ id: free, effect: allow, message: Go on. }",
};

async function start(effect: keyof typeof RULES, options: { now?: () => number; approvals?: string } = {}) {
  const policyFile = join(await testFolder(), "policy.yaml");
  const write = (rule: keyof typeof RULES, approvals = options.approvals ?? "{ ttl: 10m }") =>
    writeFile(policyFile, `version: 1\napprovals: ${approvals}\nrules:\n  - ${RULES[rule]}\n`);
  await write(effect);
  const policy = await startTestPolicy({ policyFile, reloadMs: 10, ...(options.now && { now: options.now }) });
  running.push(policy);
  const change = async (...[rule, approvals]: Parameters<typeof write>) => {
    await write(rule, approvals);
    const text = await readFile(policyFile, "utf8");
    await eventually(async () => expect((await policy.policy.getPolicy({})).text).toBe(text));
  };
  return { policy, change };
}

const ask = async ({ policy }: TestPolicy, request: DecisionRequest): Promise<Decision> => {
  const { decision } = await policy.authorize({ request });
  if (decision === undefined) throw new Error("no decision");
  return decision;
};

/** A call that was held and approved, and how it was asked about. */
async function approvedCall(policy: TestPolicy): Promise<{ request: DecisionRequest; approval: Approval }> {
  const request = testRequest({ tool: "shell.eval", args: { command: "ls" } });
  const { outcome } = await ask(policy, request);
  if (outcome.case !== "hold") throw new Error("not held");
  const { approvalId } = outcome.value;
  const { approval: pending } = await policy.approvals.getApproval({ approvalId });
  const { approval } = await policy.approvals.approve({
    approvalId,
    summaryDigest: pending?.spec?.summaryDigest ?? "",
  });
  if (approval === undefined) throw new Error("no approval");
  return { request, approval };
}

const grantOf = ({ outcome }: Decision) => {
  if (outcome.case !== "permit") throw new Error(`a ${outcome.case} has no grant`);
  return fromBinary(GrantSchema, outcome.value.grant?.statement ?? new Uint8Array());
};

describe("a call that has ended", () => {
  it.each([0, 1])("before it was decided gets no permit, and no record of one (delivery %i)", async (delivery) => {
    const { policy } = await start("allow");
    const request = testRequest({ tool: "device.ping", callId: "given-up" });
    const link = openTestLink(policy.policy);
    const outcome = { callId: "given-up", state: CallState.FAILED, deviceId: "dev-1", tool: "device.ping" };
    expect(await link.ask({ case: "recordOutcome", value: outcome })).toMatchObject({ case: "recorded" });
    expect(reasonOf(await ask(policy, { ...request, delivery }).catch((e: unknown) => e))).toBe(ErrorReason.CALL_ENDED);
    const { entries } = await policy.audit.listRecords({ callId: "given-up" });
    expect(entries.map(({ record }) => record?.event.case)).toEqual(["outcome"]);
    await link.end();
  });
});

describe("a call that is asked about again", () => {
  it("gets a new decision and grant for each delivery, and the same for the same", async () => {
    const { policy } = await start("allow");
    const request = testRequest({ tool: "device.ping" });
    const first = await ask(policy, request);
    const second = await ask(policy, { ...request, delivery: 1 });
    const third = await ask(policy, { ...request, delivery: 2 });
    const again = await ask(policy, { ...request, delivery: 1 });
    expect(new Set([first, second, third].map((decision) => grantOf(decision).grantId)).size).toBe(3);
    expect(toBinary(DecisionSchema, again)).toEqual(toBinary(DecisionSchema, second));
    const { entries } = await policy.audit.listRecords({ callId: request.callId });
    expect(entries.map(({ record }) => record?.event)).toMatchObject([
      { case: "decided", value: { grantId: grantOf(first).grantId } },
      { case: "decided", value: { grantId: grantOf(second).grantId } },
      { case: "decided", value: { grantId: grantOf(third).grantId } },
    ]);
  });

  it("is refused where the same delivery names another approval", async () => {
    const { policy } = await start("allow");
    const request = { ...testRequest({ tool: "device.ping" }), delivery: 1 };
    await ask(policy, request);
    const other = ask(policy, { ...request, approvalId: "apr-1" });
    expect(await other.catch(reasonOf)).toBe(ErrorReason.CALL_ID_REUSED);
  });

  it("is permitted by its approval, with a grant that names approval and approver", async () => {
    const { policy } = await start("hold");
    const { request, approval } = await approvedCall(policy);
    const manifestDigest = "another";
    const device = request.device && { ...request.device, manifestDigest };
    const decision = await ask(policy, { ...request, ...(device && { device }), delivery: 1, approvalId: approval.id });
    expect(grantOf(decision)).toMatchObject({
      approvalId: approval.id,
      approverIds: [OPERATOR.id],
      manifestDigest,
      callId: request.callId,
    });
    expect(decision.approval).toMatchObject({ id: approval.id, decidedBy: OPERATOR.id, decidedByName: OPERATOR.name });
    const { entries } = await policy.audit.listRecords({ callId: request.callId });
    expect(entries.at(-1)?.record?.event).toMatchObject({
      case: "decided",
      value: { decision: DecisionKind.PERMIT, approvalId: approval.id, grantId: grantOf(decision).grantId },
    });
  });

  it("is denied where the rules deny it now, although it was approved", async () => {
    const { policy, change } = await start("hold");
    const { request, approval } = await approvedCall(policy);
    await change("deny");
    const { outcome } = await ask(policy, { ...request, delivery: 1, approvalId: approval.id });
    expect(outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.POLICY_DENIED } });
  });

  it("needs no approval where the rules allow it now", async () => {
    const { policy, change } = await start("hold");
    const { request, approval } = await approvedCall(policy);
    await change("allow");
    expect(grantOf(await ask(policy, { ...request, delivery: 1, approvalId: approval.id })).approvalId).toBe("");
  });

  const other: [string, (request: DecisionRequest) => DecisionRequest][] = [
    ["other arguments", (r) => ({ ...r, arguments: Buffer.from('{"command":"id"}') })],
    ["another tool", (r) => ({ ...r, ...testRequest({ tool: "device.ping", callId: r.callId }) })],
    ["another principal", (r) => ({ ...r, ...(r.principal && { principal: { ...r.principal, id: "agent-2" } }) })],
    ["another device", (r) => ({ ...r, ...(r.device && { device: { ...r.device, id: "dev-ffffffffffffffff" } }) })],
    ["another call", (r) => ({ ...r, callId: `${r.callId}-other` })],
    ["another version of the tool", (r) => ({ ...r, ...(r.tool && { tool: { ...r.tool, schemaDigest: "other" } }) })],
    ["a longer time", (r) => ({ ...r, timeout: durationFromMs(60_001) })],
  ];
  it.each(other)("is held anew where its approval was for %s", async (_, change) => {
    const { policy } = await start("hold");
    const { request, approval } = await approvedCall(policy);
    const { outcome } = await ask(policy, { ...change(request), delivery: 1, approvalId: approval.id });
    expect(outcome.case).toBe("hold");
    expect(outcome.case === "hold" && outcome.value.approvalId).not.toBe(approval.id);
  });

  it.each(["pending", "denied", "unknown"])("is held anew where its approval is %s", async (state) => {
    const { policy } = await start("hold");
    const request = testRequest({ tool: "shell.eval", args: { command: "ls" } });
    const { outcome } = await ask(policy, request);
    const held = outcome.case === "hold" ? outcome.value.approvalId : "";
    if (state === "denied") await policy.approvals.deny({ approvalId: held });
    const approvalId = state === "unknown" ? "apr-unknown" : held;
    expect((await ask(policy, { ...request, delivery: 1, approvalId })).outcome.case).toBe("hold");
  });

  it("is held anew where its approval is older than approvals last", async () => {
    let nowMs = Date.now();
    const { policy } = await start("hold", { now: () => nowMs, approvals: "{ valid: 2h }" });
    const { request, approval } = await approvedCall(policy);
    nowMs += 7_200_000;
    const again = { ...request, approvalId: approval.id };
    expect((await ask(policy, { ...again, delivery: 1 })).outcome.case).toBe("permit");
    nowMs += 1;
    expect((await ask(policy, { ...again, delivery: 2 })).outcome.case).toBe("hold");
  });

  it("is held anew where who asked had approved it, and may not any more", async () => {
    const { policy, change } = await start("hold");
    const request = testRequest({ tool: "device.ping", principalId: OPERATOR.id, roles: [Role.OPERATOR] });
    const { outcome } = await ask(policy, request);
    const approvalId = outcome.case === "hold" ? outcome.value.approvalId : "";
    const { approval } = await policy.approvals.getApproval({ approvalId });
    await policy.approvals.approve({ approvalId, summaryDigest: approval?.spec?.summaryDigest ?? "" });
    expect((await ask(policy, { ...request, delivery: 1, approvalId })).outcome.case).toBe("permit");
    await change("hold", "{ four_eyes: true }");
    expect((await ask(policy, { ...request, delivery: 2, approvalId })).outcome.case).toBe("hold");
  });

  it("takes its new approval with it when it ends", async () => {
    const { policy } = await start("hold");
    const { request, approval } = await approvedCall(policy);
    const { outcome } = await ask(policy, { ...request, purpose: "more", delivery: 1 });
    const approvalId = outcome.case === "hold" ? outcome.value.approvalId : "";
    expect(approvalId).not.toBe(approval.id);
    const link = openTestLink(policy.policy);
    await link.ask({ case: "recordOutcome", value: { callId: request.callId, state: CallState.CANCELED } });
    await link.end();
    const { approval: after } = await policy.approvals.getApproval({ approvalId });
    expect(after?.status?.state).toBe(ApprovalState.CANCELED);
  });
});
