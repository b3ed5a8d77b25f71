import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Approval } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type Decision,
  type DecisionRequest,
  DecisionSchema,
  DeviceFactsSchema,
} from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { fanOutCallId } from "../../lib/ids/fan-out-call-id.ts";
import { openTestLink } from "./testing/test-link.ts";
import { OPERATOR, removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "./testing/test-policy.ts";
import { testRequest } from "./testing/test-requests.ts";

const running: TestPolicy[] = [];
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

/** Production waits, what is locked is denied, everything else may run. */
async function start(): Promise<TestPolicy> {
  const policyFile = join(await testFolder(), "policy.yaml");
  await writeFile(
    policyFile,
    `version: 1
rules:
  - { id: locked, effect: deny, when: "device.name.startsWith('locked')", message: It is locked. }
  - { id: production, effect: hold, when: "device.name.startsWith('prod')", message: Production waits. }
  - { id: rest, effect: allow, message: Go on. }
`,
  );
  const policy = await startTestPolicy({ policyFile });
  running.push(policy);
  return policy;
}

const deviceOf = (name: string, at: number) =>
  create(DeviceFactsSchema, { id: `dev-${at.toString(16).padStart(16, "0")}`, name, manifestDigest: `m-${at}` });

function wholeOf(names: readonly string[], changes: Partial<DecisionRequest> = {}): DecisionRequest {
  const devices = names.map(deviceOf);
  const [device] = devices;
  return {
    ...testRequest({ tool: "exec", args: { argv: ["uptime"] } }),
    ...(device && { device }),
    devices,
    ...changes,
  };
}

/** The question about one call of a fan-out. */
function callOf(whole: DecisionRequest, at: number, approvalId: string): DecisionRequest {
  const device = whole.devices[at];
  const callId = fanOutCallId(whole.callId, device?.id ?? "");
  return { ...whole, devices: [], ...(device && { device }), callId, approvalId };
}

const ask = async ({ policy }: TestPolicy, request: DecisionRequest): Promise<Decision> => {
  const { decision } = await policy.authorize({ request });
  if (decision === undefined) throw new Error("no decision");
  return decision;
};

async function held(policy: TestPolicy, whole: DecisionRequest): Promise<Approval> {
  const { outcome } = await ask(policy, whole);
  if (outcome.case !== "hold") throw new Error(`not held but a ${outcome.case}`);
  const { approval } = await policy.approvals.getApproval({ approvalId: outcome.value.approvalId });
  if (approval === undefined) throw new Error("no approval");
  return approval;
}

async function released(policy: TestPolicy, approvalId: string): Promise<Decision> {
  const link = openTestLink(policy.policy);
  const answer = await link.ask({ case: "awaitApproval", value: { approvalId } });
  await link.end();
  if (answer.case !== "decision") throw new Error(`answered with ${answer.case}`);
  return answer.value;
}

describe("a fan-out as a whole", () => {
  it("is permitted without a grant where it may run on every device", async () => {
    const policy = await start();
    const whole = wholeOf(["web-1", "web-2"]);
    const { outcome, ruleIds } = await ask(policy, whole);
    expect(outcome).toMatchObject({ case: "permit", value: { grantId: "" } });
    expect(outcome.case === "permit" && outcome.value.grant).toBeUndefined();
    expect(ruleIds).toEqual(["rest"]);
    const { entries } = await policy.audit.listRecords({ callId: whole.callId });
    expect(entries.map(({ record }) => record)).toMatchObject([
      {
        resource: `fan-outs/${whole.callId}/tools/exec`,
        event: { case: "decided", value: { decision: DecisionKind.PERMIT, grantId: "" } },
      },
    ]);
  });

  it("is denied where it may not run on one device, and the devices are named", async () => {
    const policy = await start();
    const { outcome } = await ask(policy, wholeOf(["prod-1", "locked-1", "web-1", "locked-2"]));
    expect(outcome).toMatchObject({
      case: "denial",
      value: { reason: ErrorReason.POLICY_DENIED, userMessage: "On locked-1, locked-2: It is locked." },
    });
  });

  it("is blocked for all where the tool's input is on the blocklist", async () => {
    const policy = await start();
    const blocked = { arguments: Buffer.from('{"argv":["rm","-rf","/"]}') };
    const { outcome } = await ask(policy, wholeOf(["web-1", "prod-1"], blocked));
    expect(outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.POLICY_BLOCKED } });
  });

  it("is held once where it must be held on one device, and the summary names them all", async () => {
    const policy = await start();
    const { spec } = await held(policy, wholeOf(["web-1", "prod\u202e-1", "prod-2"]));
    expect(spec?.devices.map(({ name }) => name)).toEqual(["web-1", "prod\u202e-1", "prod-2"]);
    expect(spec?.summary).toContain("a fan-out to 3 devices");
    expect(spec?.summary).toContain("  web-1 (dev-0000000000000000)\n  prod\\u{202e}-1 (dev-0000000000000001)\n");
    expect(spec?.message).toBe("Production waits.");
  });

  it("is released without a grant, the same at every time, on record once", async () => {
    const policy = await start();
    const whole = wholeOf(["web-1", "prod-1"]);
    const { id, spec } = await held(policy, whole);
    await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const first = await released(policy, id);
    expect(first.outcome).toMatchObject({ case: "permit", value: { grantId: "" } });
    expect(first.outcome.case === "permit" && first.outcome.value.grant).toBeUndefined();
    expect(toBinary(DecisionSchema, await released(policy, id))).toEqual(toBinary(DecisionSchema, first));
    const { entries } = await policy.audit.listRecords({ callId: whole.callId });
    expect(entries.map(({ record }) => record?.event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.HOLD, approvalId: id } },
      { case: "approvalDecided", value: { state: ApprovalState.APPROVED, summaryDigest: spec?.summaryDigest } },
      { case: "decided", value: { decision: DecisionKind.PERMIT, approvalId: id, grantId: "" } },
    ]);
  });

  it("covers each of its calls by its approval, on a device that was shown", async () => {
    const policy = await start();
    const whole = wholeOf(["prod-1", "prod-2"]);
    const { id, spec } = await held(policy, whole);
    expect((await ask(policy, callOf(whole, 0, id))).outcome.case).toBe("hold");
    await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const { outcome } = await ask(policy, callOf(whole, 1, id));
    if (outcome.case !== "permit") throw new Error(`a ${outcome.case}`);
    const grant = fromBinary(GrantSchema, outcome.value.grant?.statement ?? new Uint8Array());
    expect(grant).toMatchObject({ approvalId: id, approverIds: [OPERATOR.id], deviceId: whole.devices[1]?.id });
    const later = await ask(policy, { ...callOf(whole, 1, id), delivery: 1 });
    expect(later.outcome.case).toBe("permit");
  });

  it("covers no other device, no second call on a device, and no other arguments", async () => {
    const policy = await start();
    const whole = wholeOf(["prod-1", "prod-2"]);
    const { id, spec } = await held(policy, whole);
    await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const larger = { ...wholeOf(["prod-1", "prod-2", "prod-3"]), callId: whole.callId };
    const others = [
      callOf(larger, 2, id),
      { ...callOf(whole, 0, id), callId: "another" },
      { ...callOf(whole, 0, id), arguments: Buffer.from('{"argv":["id"]}') },
    ];
    for (const request of others) expect((await ask(policy, request)).outcome.case).toBe("hold");
  });

  it.each([
    [
      "names a device twice",
      { devices: [deviceOf("a", 1), deviceOf("b", 1)], device: deviceOf("a", 1) },
      "devices[1].id",
    ],
    ["begins with another device", { device: deviceOf("z", 9) }, "device.id"],
    [
      "names a device without its manifest",
      { devices: [{ ...deviceOf("web-1", 0), manifestDigest: "" }] },
      "devices[0]",
    ],
  ])("is refused where it %s", async (_, changes, field) => {
    const policy = await start();
    const error = await ask(policy, wholeOf(["web-1", "web-2"], changes)).catch(faultDetail);
    expect(error).toMatchObject({ reason: ErrorReason.INVALID_INPUT });
    expect(JSON.stringify(error && "metadata" in error && error.metadata)).toContain(field);
  });
});
