import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ApprovalResolvedSchema } from "../../../gen/ts/reeve/approval/v1/approval_events_pb.ts";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState, DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { createInProcessBus } from "../../../lib/events/in-process-bus.ts";
import { payloadOf } from "../../../lib/events/testdata/payload.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { awaitDecision, events, hold, holdingPolicy } from "../testing/test-approvals.ts";
import { openTestLink } from "../testing/test-link.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "../testing/test-policy.ts";

const running: TestPolicy[] = [];
let policyFile = "";

async function start(...options: Parameters<typeof startTestPolicy>): Promise<TestPolicy> {
  const policy = await startTestPolicy({ policyFile, ...options[0] });
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

describe("an approval that is not decided", () => {
  it("expires, is recorded as that, and the call is denied", async () => {
    const policy = await start({ policyFile: await holdingPolicy("50ms") });
    const { id, spec } = await hold(policy);
    const { outcome } = await awaitDecision(policy, id);
    expect(outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.APPROVAL_EXPIRED, approvalId: id } });
    expect((await events(policy, spec?.callId ?? ""))[1]).toMatchObject({
      actor: "policy",
      value: { state: ApprovalState.EXPIRED },
    });
  });

  it("cannot be approved once its time is over, even before the timer has fired", async () => {
    let nowMs = Date.parse("2026-11-01T12:00:00Z");
    const policy = await start({ now: () => nowMs });
    const { id, spec } = await hold(policy);
    nowMs += 600_000;
    const error = await policy.approvals
      .approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" })
      .catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.APPROVAL_EXPIRED);
  });

  it("expires at the next start where its time passed meanwhile", async () => {
    let nowMs = Date.parse("2026-11-01T12:00:00Z");
    const before = await start({ now: () => nowMs });
    const { id } = await hold(before);
    await before.stop();
    nowMs += 600_000;
    const after = await start({ stateDir: before.stateDir, now: () => nowMs });
    const { approval } = await after.approvals.getApproval({ approvalId: id });
    expect(approval?.status?.state).toBe(ApprovalState.EXPIRED);
  });
});

describe("an approval whose call ends without it", () => {
  it("ends with the call, is recorded, wakes who waits, and cannot be approved", async () => {
    const bus = createInProcessBus();
    const event = Promise.withResolvers<ApprovalState>();
    const handler = async (envelope: EventEnvelope) => {
      const settled = payloadOf(ApprovalResolvedSchema, envelope);
      if (settled) event.resolve(settled.state);
    };
    await bus.subscribe({ subject: "reeve.approval.v1.>", handler });
    const policy = await start({ bus });
    const { id, spec } = await hold(policy);
    const link = openTestLink(policy.policy);
    const waiting = link.ask({ case: "awaitApproval", value: { approvalId: id } });
    const value = { callId: spec?.callId ?? "", state: CallState.CANCELED };
    expect((await link.ask({ case: "recordOutcome", value })).case).toBe("recorded");
    expect((await waiting).value).toMatchObject({
      outcome: { case: "denial", value: { reason: ErrorReason.CALL_ENDED, approvalId: id } },
    });
    await link.end();

    const { approval } = await policy.approvals.getApproval({ approvalId: id });
    const comment = "the call ended: CANCELED";
    expect(approval?.status).toMatchObject({ state: ApprovalState.CANCELED, decidedBy: "", comment });
    const late = policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    expect(reasonOf(await late.catch((e: unknown) => e))).toBe(ErrorReason.APPROVAL_DECIDED);
    expect(await events(policy, spec?.callId ?? "")).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.HOLD } },
      { actor: "registry", case: "outcome" },
      { actor: "policy", case: "approvalDecided", value: { approvalId: id, state: ApprovalState.CANCELED } },
    ]);
    expect(await event.promise).toBe(ApprovalState.CANCELED);
    await policy.stop();
    await bus.close();
  });

  it("stays as it was decided where the decision was quicker", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy);
    await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const link = openTestLink(policy.policy);
    await link.ask({ case: "recordOutcome", value: { callId: spec?.callId ?? "", state: CallState.CANCELED } });
    await link.end();
    const { approval } = await policy.approvals.getApproval({ approvalId: id });
    expect(approval?.status?.state).toBe(ApprovalState.APPROVED);
  });
});
