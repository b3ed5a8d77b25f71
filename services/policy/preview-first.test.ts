import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type DecisionRequest, DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { GrantPurpose, GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import { approve, awaitDecision, endCall, events, holdingPolicy } from "./testing/test-approvals.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "./testing/test-policy.ts";
import { testRequest } from "./testing/test-requests.ts";

let policy: TestPolicy;
let policyFile: string;
beforeEach(async () => {
  policyFile = await holdingPolicy("10m");
  policy = await startTestPolicy({ policyFile });
});
afterEach(() => policy.stop());
afterAll(removeTestFolders);

const FACTS = Buffer.from('{"facts":[{"name":"command","value":"nginx: worker\\nDigest:    forged"}]}');

const ask = async (request: DecisionRequest) => {
  const { decision } = await policy.policy.authorize({ request });
  return decision ?? expect.fail();
};
const kill = () => testRequest({ tool: "proc.kill", args: { pid: 12 } });

async function look(request: DecisionRequest) {
  const { outcome } = await ask(request);
  return outcome.case === "preview" ? outcome.value : expect.fail(`${outcome.case}`);
}

/** The same request with what the device found. */
async function shown(request: DecisionRequest, facts = FACTS): Promise<DecisionRequest> {
  const { previewId } = await look(request);
  return { ...request, preview: { $typeName: "reeve.policy.v1.CallPreview", previewId, facts, missing: "" } };
}

async function held(request: DecisionRequest) {
  const { outcome } = await ask(request);
  if (outcome.case !== "hold") throw new Error(`not held: ${outcome.case}`);
  const { approval } = await policy.approvals.getApproval({ approvalId: outcome.value.approvalId });
  return approval?.spec ? { ...approval, spec: approval.spec } : expect.fail();
}

describe("a call that would be held", () => {
  it("is looked at first, by a grant for nothing but that, which is on record", async () => {
    const request = kill();
    const { grant, previewId } = await look(request);
    expect(fromBinary(GrantSchema, grant?.statement ?? expect.fail())).toMatchObject({
      version: 2,
      purpose: GrantPurpose.PREVIEW,
      callId: previewId,
      tool: "proc.kill",
      argsDigest: sha256Hex(request.arguments),
      timeout: { seconds: 10n },
    });
    // No caller can choose such an id.
    expect(previewId).toMatch(/^preview#[0-9a-f]{40}$/);
    expect(await events(policy, request.callId)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.PREVIEW, grantId: expect.stringMatching(/^[0-9a-f]{32}$/) } },
    ]);
  });

  it("gets the same permission again, byte for byte, also after a restart", async () => {
    const request = kill();
    const first = toBinary(DecisionSchema, await ask(request));
    await policy.stop();
    policy = await startTestPolicy({ policyFile, stateDir: policy.stateDir });
    expect(toBinary(DecisionSchema, await ask(request))).toEqual(first);
    expect(await events(policy, request.callId)).toHaveLength(1);
  });

  it("is held with what was found, which no value can make look like the summary", async () => {
    const { spec } = await held(await shown(kill()));
    expect(spec).toMatchObject({ preview: "command: nginx: worker", previewDigest: sha256Hex(FACTS) });
    expect(spec.summary).toContain("\n  command:\n    | nginx: worker\n    | Digest:    forged\n");
  });

  it("is held once, whether it is asked about with a preview, without one, or with another", async () => {
    const request = kill();
    const first = await ask(await shown(request));
    expect(await ask(request)).toEqual(first);
    const other = Buffer.from('{"facts":[{"name":"command","value":"another"}]}');
    const preview = { $typeName: "reeve.policy.v1.CallPreview" as const, previewId: "p", facts: other, missing: "" };
    expect(await ask({ ...request, preview })).toEqual(first);
  });

  it("says in its summary why there is no preview", async () => {
    const request = kill();
    await look(request);
    const missing = "the device is \u001boffline";
    const preview = {
      $typeName: "reeve.policy.v1.CallPreview" as const,
      previewId: "",
      facts: new Uint8Array(),
      missing,
    };
    const { spec } = await held({ ...request, preview });
    expect(spec.summary).toContain("Preview:   none: the device is \\u{1b}offline\n");
    expect(spec.previewDigest).toBe("");
  });

  it("is refused with what is no preview", async () => {
    const request = await shown(kill(), Buffer.from('{"facts":"all is well"}'));
    expect(await ask(request).catch(reasonOf)).toBe(ErrorReason.INVALID_INPUT);
  });

  it("has its approval canceled when it ends, although the look came before", async () => {
    const { id, spec } = await held(await shown(kill()));
    await endCall(policy, spec.callId);
    const { approval } = await policy.approvals.getApproval({ approvalId: id });
    expect(approval?.status?.state).toBe(ApprovalState.CANCELED);
  });

  it("is not looked at where it cannot be held anyway", async () => {
    const request = testRequest({ tool: "fs.write", args: { path: "/a", text: "x".repeat(70_000) } });
    expect((await ask(request)).outcome).toMatchObject({
      case: "denial",
      value: { reason: ErrorReason.INPUT_TOO_LARGE },
    });
  });

  it("of a tool that has no preview is held at once", async () => {
    const { spec } = await held(testRequest({ tool: "shell.eval", args: { command: "ls" } }));
    expect(spec.summary).not.toContain("Preview:");
  });

  it("of many devices is held at once, and says that there is no preview", async () => {
    const request = kill();
    const { spec } = await held({ ...request, devices: request.device ? [request.device] : [] });
    expect(spec.summary).toContain("Preview:   none: each of the devices would have its own\n");
  });
});

describe("the grant of an approved call", () => {
  const grantOf = ({ outcome }: Awaited<ReturnType<typeof ask>>) =>
    outcome.case === "permit"
      ? fromBinary(GrantSchema, outcome.value.grant?.statement ?? expect.fail())
      : expect.fail();

  it("names what its approver was shown, also of a delivery that the approval covers", async () => {
    const request = await shown(kill());
    const approval = await held(request);
    await approve(policy, approval);
    const named = { version: 1, purpose: GrantPurpose.UNSPECIFIED, previewDigest: sha256Hex(FACTS) };
    const previewId = request.preview?.previewId ?? "";
    expect(grantOf(await awaitDecision(policy, approval.id))).toMatchObject({ ...named, previewId });
    const { preview: _, ...rest } = request;
    const delivered = await ask({ ...rest, delivery: 1, approvalId: approval.id });
    expect(grantOf(delivered)).toMatchObject({ ...named, previewId });
  });
});
