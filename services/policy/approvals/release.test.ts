import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Decision, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { openLogFile } from "../../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../../lib/audit-verify/verify.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { runSql } from "../testing/run-sql.ts";
import { approve, awaitDecision, endCall, events, hold } from "../testing/test-approvals.ts";
import { OPERATOR, removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "../testing/test-policy.ts";
import { verifyDatabase } from "../testing/test-replicas.ts";
import { testRequest } from "../testing/test-requests.ts";

const HOUR = 3_600_000;
const running: TestPolicy[] = [];
let nowMs = 0;
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

const HOLD = "{ id: all, effect: hold, message: Everything waits. }";
const ALLOW = "{ id: free, effect: allow, message: Go on. }";
const deny = (when: string) => `{ id: none, effect: deny, when: '${when}', message: Not any more. }`;

async function start(approvals = "{ ttl: 10m, valid: 2h }") {
  nowMs = Date.parse("2026-11-01T12:00:00Z");
  const policyFile = join(await testFolder(), "policy.yaml");
  const write = (rules: readonly string[], limits: string) =>
    writeFile(policyFile, `version: 1\napprovals: ${limits}\nrules:\n${rules.map((rule) => `  - ${rule}\n`).join("")}`);
  await write([HOLD], approvals);
  const policy = await startTestPolicy({ policyFile, reloadMs: 10, now: () => nowMs });
  running.push(policy);
  const change = async (rules: readonly string[], limits = approvals) => {
    await write(rules, limits);
    const text = await readFile(policyFile, "utf8");
    await eventually(async () => expect((await policy.policy.getPolicy({})).text).toBe(text));
    return (await policy.policy.getPolicy({})).version;
  };
  return { policy, change };
}

async function findings(policy: TestPolicy) {
  await policy.stop();
  if (policy.databaseUrl !== undefined) return (await verifyDatabase(policy)).findings;
  const source = openLogFile(join(policy.stateDir, "policy.db"));
  const { checkpointKey: verifierKey } = policy.service;
  return (await verifyLog(source, { verifierKey }).finally(() => source.close())).findings;
}

const grantIdOf = ({ outcome }: Decision) => (outcome.case === "permit" ? outcome.value.grantId : outcome.case);
const signerOf = ({ outcome }: Decision) =>
  outcome.case === "permit" ? outcome.value.grant?.head?.signatures[0]?.keyId : outcome.case;

describe("a call that was approved long ago", () => {
  it("is denied as expired, on record, the same at every time, before anything is signed", async () => {
    const { policy } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    nowMs += 2 * HOUR + 1;
    const decision = await awaitDecision(policy, approval.id);
    expect(decision.outcome).toMatchObject({
      case: "denial",
      value: { reason: ErrorReason.APPROVAL_EXPIRED, approvalId: approval.id },
    });
    nowMs += HOUR;
    expect(toBinary(DecisionSchema, await awaitDecision(policy, approval.id))).toEqual(
      toBinary(DecisionSchema, decision),
    );
    expect((await events(policy, approval.spec?.callId ?? "")).slice(1)).toMatchObject([
      { case: "approvalDecided", value: { state: ApprovalState.APPROVED } },
      { case: "decided", value: { decision: DecisionKind.DENIAL, reason: ErrorReason.APPROVAL_EXPIRED, grantId: "" } },
    ]);
    expect(await findings(policy)).toEqual([]);
  });

  it("is released to the last millisecond that approvals last, and not renewed after it", async () => {
    const { policy } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    nowMs += 2 * HOUR;
    const first = await awaitDecision(policy, approval.id);
    expect(first.outcome.case).toBe("permit");
    nowMs += 59_999;
    expect(await awaitDecision(policy, approval.id)).toEqual(first);
    nowMs += 1;
    expect((await awaitDecision(policy, approval.id)).outcome.case).toBe("denial");
    expect(await findings(policy)).toEqual([]);
  });
});

describe("a call that was approved under other rules", () => {
  it("is denied where they deny it now, by its arguments too, on record, the same at every time", async () => {
    const { policy, change } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    const version = await change([HOLD, deny('args.command == "ls"')]);
    const decision = await awaitDecision(policy, approval.id);
    expect(decision).toMatchObject({
      ruleIds: ["all", "none"],
      policyVersion: version,
      outcome: {
        case: "denial",
        value: { reason: ErrorReason.POLICY_DENIED, userMessage: "Not any more.", approvalId: "" },
      },
    });
    await change([ALLOW]);
    expect(await awaitDecision(policy, approval.id)).toEqual(decision);
    expect((await events(policy, approval.spec?.callId ?? "")).at(-1)).toMatchObject({
      value: {
        decision: DecisionKind.DENIAL,
        policyVersion: version,
        ruleIds: ["all", "none"],
        approvalId: approval.id,
      },
    });
    expect(await findings(policy)).toEqual([]);
  });

  it.each([
    ["hold it still", [HOLD, deny('args.command == "id"')], ["all"]],
    ["allow it now", [ALLOW], ["free"]],
  ])("is released by them where they %s", async (_, rules, ruleIds) => {
    const { policy, change } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    const policyVersion = await change(rules);
    const decision = await awaitDecision(policy, approval.id);
    expect(decision).toMatchObject({ outcome: { case: "permit" }, ruleIds, policyVersion });
    expect((await events(policy, approval.spec?.callId ?? "")).at(-1)).toMatchObject({
      value: {
        decision: DecisionKind.PERMIT,
        ruleIds,
        policyVersion,
        approvalId: approval.id,
        grantId: grantIdOf(decision),
      },
    });
    expect(await findings(policy)).toEqual([]);
  });

  it("is denied where who asked had approved it, and may not any more", async () => {
    const { policy, change } = await start();
    const approval = await hold(policy, { principalId: OPERATOR.id, roles: [Role.OPERATOR] });
    await approve(policy, approval);
    await change([HOLD], "{ four_eyes: true }");
    expect((await awaitDecision(policy, approval.id)).outcome).toMatchObject({
      case: "denial",
      value: { reason: ErrorReason.FOUR_EYES, approvalId: approval.id },
    });
  });

  it("is denied where what was asked is not kept any more", async () => {
    const { policy, change } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    await runSql(policy, "delete from approval_requests");
    await change([ALLOW]);
    expect((await awaitDecision(policy, approval.id)).outcome).toMatchObject({
      case: "denial",
      value: { reason: ErrorReason.POLICY_DENIED },
    });
  });
});

describe("a call that has ended", () => {
  it("gets no permit where it was canceled at the moment it was approved", async () => {
    const { policy } = await start();
    const approval = await hold(policy);
    const callId = approval.spec?.callId ?? "";
    await approve(policy, approval);
    await endCall(policy, callId);
    const decision = await awaitDecision(policy, approval.id);
    expect(decision.outcome).toMatchObject({ case: "denial", value: { reason: ErrorReason.CALL_ENDED } });
    expect(await awaitDecision(policy, approval.id)).toEqual(decision);
    const cases = (await events(policy, callId)).map((event) => event.case);
    expect(cases).toEqual(["decided", "approvalDecided", "outcome"]);
    expect(await findings(policy)).toEqual([]);
  });

  it("gets no new permit after its first one has run out", async () => {
    const { policy } = await start();
    const approval = await hold(policy);
    await approve(policy, approval);
    const first = await awaitDecision(policy, approval.id);
    await endCall(policy, approval.spec?.callId ?? "");
    expect(await awaitDecision(policy, approval.id)).toEqual(first);
    nowMs += 60_000;
    expect((await awaitDecision(policy, approval.id)).outcome.case).toBe("denial");
  });

  it("gets no permit for its device either", async () => {
    const { policy } = await start();
    const request = testRequest({ tool: "shell.eval", args: { command: "ls" } });
    const approval = await hold(policy, { callId: request.callId });
    await approve(policy, approval);
    const again = { ...request, delivery: 1, approvalId: approval.id };
    const { decision } = await policy.policy.authorize({ request: again });
    await endCall(policy, request.callId);
    expect((await policy.policy.authorize({ request: again })).decision).toEqual(decision);
    const late = policy.policy.authorize({ request: { ...again, delivery: 2 } });
    expect(reasonOf(await late.catch((e: unknown) => e))).toBe(ErrorReason.CALL_ENDED);
  });
});

it("a permit whose key has retired is made anew, with the key that devices trust", async () => {
  const { policy } = await start();
  const approval = await hold(policy);
  await approve(policy, approval);
  const first = await awaitDecision(policy, approval.id);
  const { key } = await policy.keys.rotateKey({ role: KeyRole.GRANT, overlap: { seconds: 2n } });
  nowMs += 2000;
  await eventually(() => expect(policy.service.grantKeys.map(({ keyId }) => keyId)).toEqual([key?.id]));
  const second = await awaitDecision(policy, approval.id);
  expect([signerOf(first) === key?.id, signerOf(second)]).toEqual([false, key?.id]);
  expect(await awaitDecision(policy, approval.id)).toEqual(second);
  expect(await findings(policy)).toEqual([]);
});

it("keeps what was asked only for as long as it may be released", async () => {
  const { policy } = await start();
  const [denied, canceled, old] = [await hold(policy), await hold(policy), await hold(policy)];
  await policy.approvals.deny({ approvalId: denied.id });
  await endCall(policy, canceled.spec?.callId ?? "");
  await approve(policy, old);
  const kept = () => runSql(policy, "select approval_id from approval_requests");
  expect(await kept()).toEqual([{ approval_id: old.id }]);
  nowMs += 2 * HOUR + 1;
  await awaitDecision(policy, old.id);
  expect(await kept()).toEqual([]);
});
