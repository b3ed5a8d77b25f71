import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { createInProcessBus } from "../../../lib/events/in-process-bus.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { awaitDecision, events, hold, holdingPolicy } from "../testing/test-approvals.ts";
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

describe("a held call", () => {
  it("becomes an approval that says exactly what would run", async () => {
    const policy = await start();
    const { spec, status } = await hold(policy, { purpose: "look around" });
    expect(status?.state).toBe(ApprovalState.PENDING);
    expect(spec).toMatchObject({ tool: "shell.eval", deviceName: "laptop", principalId: "agent-1", ruleIds: ["all"] });
    expect(spec?.arguments).toEqual({ command: "ls" });
    expect(spec?.summary).toContain('command: "ls"');
    expect(spec?.summary).toContain('"look around"');
    expect(spec?.summaryDigest).toMatch(/^[0-9a-f]{64}$/);
  });

  it("is approved once, with a grant that names approval and approver", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy);
    const waiting = awaitDecision(policy, id);
    const summaryDigest = spec?.summaryDigest ?? "";
    const { approval } = await policy.approvals.approve({
      approvalId: id,
      summaryDigest,
      comment: "fine",
      channel: "cli",
    });
    expect(approval?.status).toMatchObject({
      state: ApprovalState.APPROVED,
      decidedBy: "op-1",
      channel: "cli",
      comment: "fine",
    });

    const { outcome, ruleIds } = await waiting;
    expect(ruleIds).toEqual(["all"]);
    if (outcome.case !== "permit") throw new Error("not permitted");
    const grant = fromBinary(GrantSchema, outcome.value.grant?.statement ?? new Uint8Array());
    expect(grant).toMatchObject({
      approvalId: id,
      approverIds: ["op-1"],
      callId: spec?.callId,
      argsDigest: spec?.argsDigest,
    });
    expect(await events(policy, spec?.callId ?? "")).toMatchObject([
      { actor: "agent-1", case: "decided", value: { decision: DecisionKind.HOLD, approvalId: id } },
      {
        actor: "op-1",
        case: "approvalDecided",
        value: { state: ApprovalState.APPROVED, channel: "cli", summaryDigest },
      },
      {
        actor: "agent-1",
        case: "decided",
        value: { decision: DecisionKind.PERMIT, approvalId: id, grantId: grant.grantId },
      },
    ]);
  });

  it("is denied with the decider's comment", async () => {
    const policy = await start();
    const { id } = await hold(policy);
    const waiting = awaitDecision(policy, id);
    await policy.approvals.deny({ approvalId: id, comment: "not today" });
    const { outcome } = await waiting;
    expect(outcome).toMatchObject({
      case: "denial",
      value: {
        reason: ErrorReason.APPROVAL_DENIED,
        approvalId: id,
        userMessage: expect.stringContaining("not today"),
      },
    });
  });

  it("gives a permit to a caller that asks after it was approved, also after a restart", async () => {
    const before = await start();
    const { id, spec } = await hold(before);
    await before.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    await before.stop();
    const after = await start({ stateDir: before.stateDir });
    expect((await awaitDecision(after, id)).outcome.case).toBe("permit");
  });

  it("keeps one permit while its grant is valid, and gets a new one with a record afterwards", async () => {
    let nowMs = Date.parse("2026-11-01T12:00:00Z");
    const policy = await start({ now: () => nowMs });
    const { id, spec } = await hold(policy);
    await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const [first, same] = await Promise.all([awaitDecision(policy, id), awaitDecision(policy, id)]);
    expect(same).toEqual(first);
    nowMs += 59_999;
    expect(await awaitDecision(policy, id)).toEqual(first);
    nowMs += 1;
    const renewed = await awaitDecision(policy, id);
    expect(renewed.outcome.value).not.toMatchObject({ grantId: (first.outcome.value as { grantId: string }).grantId });
    expect(await events(policy, spec?.callId ?? "")).toHaveLength(4);
  });
});

describe("a decision", () => {
  it("is final: the second one is refused and names the state", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy);
    await policy.approvals.deny({ approvalId: id });
    const again = await policy.approvals
      .approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" })
      .catch((e: unknown) => e);
    expect(faultDetail(again)).toMatchObject({
      reason: ErrorReason.APPROVAL_DECIDED,
      metadata: { approval_id: id, state: "denied" },
    });
  });

  it("is one, where two come at once", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy);
    const summaryDigest = spec?.summaryDigest ?? "";
    const results = await Promise.allSettled([
      policy.approvals.approve({ approvalId: id, summaryDigest }),
      policy.approvals.deny({ approvalId: id }),
      policy.approvals.approve({ approvalId: id, summaryDigest }),
    ]);
    expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
    const settled = (await events(policy, spec?.callId ?? "")).filter((event) => event.case === "approvalDecided");
    expect(settled).toHaveLength(1);
  });

  it("is refused where the approver saw another summary", async () => {
    const policy = await start();
    const { id } = await hold(policy);
    const error = await policy.approvals
      .approve({ approvalId: id, summaryDigest: "0".repeat(64) })
      .catch((e: unknown) => e);
    expect(faultDetail(error)).toMatchObject({
      reason: ErrorReason.INVALID_INPUT,
      metadata: { field: "summary_digest" },
    });
  });

  it("is not the requester's where four eyes are asked for", async () => {
    const policy = await start({ policyFile: await holdingPolicy("10m", "60s", true) });
    const { id, spec } = await hold(policy, { principalId: "op-1", roles: [Role.OPERATOR] });
    const summaryDigest = spec?.summaryDigest ?? "";
    const own = await policy.approvals.approve({ approvalId: id, summaryDigest }).catch((e: unknown) => e);
    expect(faultDetail(own)).toMatchObject({ reason: ErrorReason.FOUR_EYES, metadata: { approval_id: id } });
    const { approval } = await policy.approvalsAs("op-2", Role.OPERATOR).approve({ approvalId: id, summaryDigest });
    expect(approval?.status?.decidedBy).toBe("op-2");
  });

  it("may be the requester's own where they are not", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy, { principalId: "op-1", roles: [Role.OPERATOR] });
    const { approval } = await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    expect(approval?.status?.decidedBy).toBe("op-1");
  });

  it("is not an agent's to take", async () => {
    const policy = await start();
    const { id, spec } = await hold(policy);
    const agent = policy.approvalsAs("agent-1", Role.AGENT);
    const error = await agent
      .approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" })
      .catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.ROLE_REQUIRED);
  });

  it("about an unknown approval is refused", async () => {
    const policy = await start();
    const error = await policy.approvals.deny({ approvalId: "apr-none" }).catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.NOT_FOUND);
  });
});

describe("reading approvals", () => {
  it("lists newest first, page by page and by state", async () => {
    const policy = await start();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await hold(policy)).id);
    await policy.approvals.deny({ approvalId: ids[0] ?? "" });
    const listed: string[] = [];
    for (let pageToken = "", first = true; first || pageToken !== ""; first = false) {
      const page = await policy.approvals.listApprovals({ pageSize: 2, pageToken });
      expect(page.approvals.length).toBeLessThanOrEqual(2);
      listed.push(...page.approvals.map((approval) => approval.id));
      pageToken = page.nextPageToken;
    }
    expect(listed).toEqual(ids);
    const pending = await policy.approvals.listApprovals({ state: ApprovalState.PENDING });
    expect(pending.approvals.map((approval) => approval.id)).toEqual(ids.slice(1));
    const error = await policy.approvals.listApprovals({ pageToken: "x" }).catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.INVALID_INPUT);
  });

  it("watches: what is pending first, then every change, until the service closes", async () => {
    const policy = await start();
    const pending = await hold(policy);
    const seen: [string, ApprovalState | undefined][] = [];
    let later = "";
    for await (const { approval } of policy.approvals.watchApprovals({})) {
      seen.push([approval?.id ?? "", approval?.status?.state]);
      if (seen.length === 1) later = (await hold(policy)).id;
      if (seen.length === 2) await policy.approvals.deny({ approvalId: pending.id });
      if (seen.length === 3) void policy.stop();
    }
    expect(seen).toEqual([
      [pending.id, ApprovalState.PENDING],
      [later, ApprovalState.PENDING],
      [pending.id, ApprovalState.DENIED],
    ]);
  });
});

describe("events", () => {
  it("report the request and the decision, in order, once each", async () => {
    const bus = createInProcessBus();
    const types: string[] = [];
    const both = Promise.withResolvers<void>();
    await bus.subscribe({
      subject: "reeve.approval.v1.>",
      handler: async (envelope) => {
        types.push(envelope.type);
        if (types.length === 2) both.resolve();
      },
    });
    const policy = await start({ bus });
    const { id } = await hold(policy);
    await policy.approvals.deny({ approvalId: id });
    await both.promise;
    await policy.stop();
    await bus.close();
    expect(types).toEqual(["reeve.approval.v1.ApprovalRequested", "reeve.approval.v1.ApprovalResolved"]);
  });
});
