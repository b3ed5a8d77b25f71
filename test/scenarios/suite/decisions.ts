import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CallState, DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome, ReceiptSchema } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { approveCall, pendingApproval } from "../../../testkit/approvals.ts";
import { callIn, endOf, type Scene } from "./scene.ts";

/** What policy and people decide, and what becomes of the call then. */
export function describeDecisions(scene: () => Scene): void {
  test("a permitted call runs, with grant and receipt", async () => {
    const { operator, newFile } = scene();
    const file = newFile();
    const call = callIn(await operator.registry.callTool({ tool: "exec", params: { argv: ["touch", file] } }));
    expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, outputSanitized: false } });
    expect(call.status.output).toMatchObject({ exitCode: 0, stderr: "" });
    expect(call.status.decision).toMatchObject({ kind: DecisionKind.PERMIT, ruleIds: ["exec/operator"] });
    const receipt = fromBinary(ReceiptSchema, call.status.receipt?.statement ?? new Uint8Array());
    const { grantId } = call.status;
    const { argsDigest, deviceId } = call.spec;
    expect(grantId).toMatch(/^[0-9a-f]{32}$/);
    expect(receipt).toMatchObject({
      callId: call.id,
      grantId,
      argsDigest,
      deviceId,
      outcome: ExecutionOutcome.SUCCEEDED,
    });
    expect(existsSync(file)).toBe(true);
  });

  test("a denied call says why and reaches no device", async () => {
    const { agent } = scene();
    const call = callIn(await agent.registry.callTool({ tool: "fs.read", params: { path: "/etc/shadow" } }));
    expect(call).toMatchObject({
      status: { state: CallState.DENIED, grantId: "", error: { reason: ErrorReason.POLICY_DENIED } },
    });
    expect(call.status.decision).toMatchObject({ kind: DecisionKind.DENIAL });
    expect(call.status.decision?.ruleIds).toContain("fs.read/agent-secrets");
    expect(call.status.errorMessage).toContain("secrets");
    expect([call.status.receipt, call.status.output]).toEqual([undefined, undefined]);
  });

  test("a held call runs when it is approved while its caller waits", async () => {
    const { operator, agent, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const answer = agent.registry.callTool({ tool: "exec", params: { argv: ["touch", file] }, callId });
    const { spec } = await pendingApproval(operator, callId);
    expect(spec?.summary).toContain(file);
    expect(existsSync(file)).toBe(false);
    const approval = await approveCall(operator, callId);
    const call = callIn(await answer);
    const { id, status } = approval;
    expect(status?.decidedBy).not.toBe("");
    expect(call.status).toMatchObject({
      state: CallState.SUCCEEDED,
      approval: {
        id,
        decidedBy: status?.decidedBy,
        decidedByName: status?.decidedByName,
        decideTime: status?.decideTime,
      },
    });
    const shown = callIn(await agent.registry.getCall({ callId: call.id }));
    expect(shown.status.approval).toEqual(call.status.approval);
    expect(existsSync(file)).toBe(true);
  });

  test("a held call runs when it is approved after its caller has left", async () => {
    const { operator, agent, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const caller = new AbortController();
    const request = { tool: "exec", params: { argv: ["touch", file] }, callId };
    const answer = agent.registry.callTool(request, { signal: caller.signal });
    await pendingApproval(operator, callId);
    caller.abort();
    await expect(answer).rejects.toThrow();
    const ended = endOf(agent, callId);
    await approveCall(operator, callId);
    expect((await ended).status.state).toBe(CallState.SUCCEEDED);
    expect(callIn(await agent.registry.getCall({ callId })).status.state).toBe(CallState.SUCCEEDED);
    expect(existsSync(file)).toBe(true);
  });

  test("a held call is returned as it stands when its caller does not want to wait", async () => {
    const { operator, agent, newFile } = scene();
    const request = { tool: "exec", params: { argv: ["touch", newFile()] } };
    const atOnce = callIn(await agent.registry.callTool({ ...request, noWait: true }));
    const soon = callIn(await agent.registry.callTool({ ...request, approvalWait: durationFromMs(1) }));
    for (const { id, status } of [atOnce, soon]) {
      expect(status.state).toBe(CallState.HELD);
      expect((await pendingApproval(operator, id)).id).toBe(status.approval?.id);
    }
  });

  test("a call that a person denies ends with what the person said", async () => {
    const { operator, agent, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const answer = agent.registry.callTool({ tool: "exec", params: { argv: ["touch", file] }, callId });
    const { id: approvalId } = await pendingApproval(operator, callId);
    await operator.approvals.deny({ approvalId, comment: "not on a Friday" });
    const call = callIn(await answer);
    expect(call).toMatchObject({
      status: { state: CallState.DENIED, grantId: "", error: { reason: ErrorReason.APPROVAL_DENIED } },
    });
    expect(call.status.approval).toMatchObject({ id: approvalId, decidedBy: expect.stringMatching(/./) as string });
    expect(call.status.errorMessage).toContain("not on a Friday");
    expect(existsSync(file)).toBe(false);
  });

  test("a call that is not decided in time expires", async () => {
    const { agent, newFile, changePolicy } = scene();
    const file = newFile();
    const restorePolicy = await changePolicy((text) => text.replace("ttl: 10m", "ttl: 1s"));
    try {
      const call = callIn(await agent.registry.callTool({ tool: "exec", params: { argv: ["touch", file] } }));
      expect(call).toMatchObject({
        status: { state: CallState.EXPIRED, error: { reason: ErrorReason.APPROVAL_EXPIRED } },
      });
      expect(existsSync(file)).toBe(false);
    } finally {
      await restorePolicy();
    }
  });

  test("the first decision wins, and it must name what was shown", async () => {
    const { operator, agent, newFile } = scene();
    const { id } = callIn(
      await agent.registry.callTool({ tool: "exec", params: { argv: ["touch", newFile()] }, noWait: true }),
    );
    const { id: approvalId } = await pendingApproval(operator, id);
    const unseen = operator.approvals.approve({ approvalId, summaryDigest: "0".repeat(64) });
    expect(await unseen.catch(reasonOf)).toBe(ErrorReason.INVALID_INPUT);
    await operator.approvals.deny({ approvalId });
    const late = operator.approvals.deny({ approvalId });
    expect(await late.catch(reasonOf)).toBe(ErrorReason.APPROVAL_DECIDED);
  });

  test("an agent cannot approve", async () => {
    const { operator, agent, newFile } = scene();
    const { id } = callIn(
      await agent.registry.callTool({ tool: "exec", params: { argv: ["touch", newFile()] }, noWait: true }),
    );
    const { id: approvalId, spec } = await pendingApproval(operator, id);
    const own = agent.approvals.approve({ approvalId, summaryDigest: spec?.summaryDigest ?? "" });
    expect(await own.catch(reasonOf)).toBe(ErrorReason.ROLE_REQUIRED);
  });

  test("who asked cannot approve where policy wants four eyes", async () => {
    const { operator, newFile, newCallId, changePolicy } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const restorePolicy = await changePolicy((text) => text.replace("four_eyes: false", "four_eyes: true"));
    try {
      await operator.registry.callTool({
        tool: "shell.eval",
        params: { command: `touch ${file}` },
        callId,
        noWait: true,
      });
      expect(await approveCall(operator, callId).catch(reasonOf)).toBe(ErrorReason.FOUR_EYES);
      expect(existsSync(file)).toBe(false);
    } finally {
      await restorePolicy();
    }
  });

  test("a block cannot be lifted by any role", async () => {
    const { operator, newFile } = scene();
    const file = newFile();
    const command = `touch ${file}; rm -rf /`;
    const call = callIn(await operator.registry.callTool({ tool: "shell.eval", params: { command } }));
    expect(call).toMatchObject({ status: { state: CallState.DENIED, error: { reason: ErrorReason.POLICY_BLOCKED } } });
    expect(call.status.decision?.ruleIds[0]).toBe("blocklist/delete-system");
    expect(existsSync(file)).toBe(false);
  });

  test("a policy file that is wrong is refused, and the one before stays active", async () => {
    const { backend, operator, changePolicy } = scene();
    const restorePolicy = await changePolicy((text) => text);
    await writeFile(backend.policyFile, "version: 1\nrules: []\n");
    await expect.poll(async () => (await operator.policy.getPolicy({})).refused, { timeout: 30_000 }).toContain("rule");
    const call = callIn(await operator.registry.callTool({ tool: "device.ping" }));
    expect(call.status.state).toBe(CallState.SUCCEEDED);
    await restorePolicy();
  });
}
