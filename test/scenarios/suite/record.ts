import { expect, test } from "vitest";
import type { CompleteCall } from "../../../client/complete-call.ts";
import {
  ApprovalRequestedSchema,
  ApprovalResolvedSchema,
} from "../../../gen/ts/reeve/approval/v1/approval_events_pb.ts";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallEndedSchema } from "../../../gen/ts/reeve/call/v1/call_events_pb.ts";
import { CallState, DecisionKind } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { rpcLogSource } from "../../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../../lib/audit-verify/verify.ts";
import { createInbox } from "../../../lib/events/testdata/inbox.ts";
import { payloadOf } from "../../../lib/events/testdata/payload.ts";
import { leafHash } from "../../../lib/merkle/hash.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { parseVkey } from "../../../lib/sign/note.ts";
import { verifyTlogProof } from "../../../lib/sign/tlog-proof.ts";
import { approveCall } from "../../../testkit/approvals.ts";
import type { Caller } from "../../../testkit/clients.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { callIn, type Scene } from "./scene.ts";

/** What stays of a call: its records, their proofs, and its event. */
export function describeRecord(scene: () => Scene, bus: boolean): void {
  test("a call's records say what was decided and how it ended, and each is proved to be in the log", async () => {
    const { operator } = scene();
    const call = await recorded(operator, callIn(await operator.registry.callTool({ tool: "device.ping" })));
    const { entries } = await operator.audit.listRecords({ callId: call.id });
    const { id: callId, status } = call;
    const { grantId } = status;
    const { argsDigest, deviceId, principalId } = call.spec;
    const receiptDigest = sha256Hex(call.status.receipt?.statement ?? "");
    expect(entries.map(({ index }) => index)).toEqual([
      call.status.decision?.auditIndex,
      call.status.outcomeAuditIndex,
    ]);
    expect(entries.map(({ record }) => record?.event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.PERMIT, grantId, argsDigest, deviceId, tool: "device.ping" } },
      { case: "outcome", value: { callId, state: CallState.SUCCEEDED, grantId, argsDigest, deviceId, receiptDigest } },
    ]);
    expect(entries[0]?.record?.actor).toBe(principalId);
    for (const { index } of entries) await expectProved(operator, index);
  });

  test("an approved call's records are the hold, the person's decision, the permit and the end", async () => {
    const { operator, agent, newFile, newCallId } = scene();
    const callId = newCallId();
    const answer = agent.registry.callTool({ tool: "exec", params: { argv: ["touch", newFile()] }, callId });
    const { id: approvalId, status } = await approveCall(operator, callId);
    const { id } = await recorded(operator, callIn(await answer));
    const { entries } = await operator.audit.listRecords({ callId: id });
    expect(entries.map(({ record }) => record?.event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.HOLD, approvalId, grantId: "" } },
      { case: "approvalDecided", value: { approvalId, state: ApprovalState.APPROVED, channel: "test" } },
      { case: "decided", value: { decision: DecisionKind.PERMIT, approvalId } },
      { case: "outcome", value: { callId: id, state: CallState.SUCCEEDED } },
    ]);
    expect(entries[1]?.record?.actor).toBe(status?.decidedBy);
  });

  test("a denial is on record, without an end", async () => {
    const { operator, agent } = scene();
    const { id: callId } = callIn(await agent.registry.callTool({ tool: "fs.read", params: { path: "/etc/shadow" } }));
    const { entries } = await operator.audit.listRecords({ callId });
    expect(entries.map(({ record }) => record?.event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.DENIAL, reason: ErrorReason.POLICY_DENIED, grantId: "" } },
    ]);
  });

  test("the log of a running control plane verifies from outside", async () => {
    const { operator } = scene();
    const { verifierKey } = await operator.audit.getCheckpoint({});
    const report = await verifyLog(rpcLogSource(operator.audit), { verifierKey });
    expect(report.findings).toEqual([]);
    expect(report.size).toBeGreaterThan(0);
  });

  if (!bus) return;
  test("the end of a call and the approval before it are events on the bus", async () => {
    const { backend, operator, agent, newFile, newCallId } = scene();
    const callId = newCallId();
    const inbox = createInbox(({ type }) => type);
    const subscription = await backend.bus?.subscribe({
      subject: "reeve.>",
      handler: async (envelope) => {
        if (Buffer.from(envelope.payload).includes(callId)) await inbox.take(envelope);
      },
    });
    const answer = agent.registry.callTool({ tool: "exec", params: { argv: ["touch", newFile()] }, callId });
    const approval = await approveCall(operator, callId);
    const call = callIn(await answer);
    const types = await inbox.until(3);
    await subscription?.close();
    expect(types.toSorted()).toEqual([
      ApprovalRequestedSchema.typeName,
      ApprovalResolvedSchema.typeName,
      CallEndedSchema.typeName,
    ]);
    const [settled] = inbox.envelopes.flatMap((envelope) => payloadOf(ApprovalResolvedSchema, envelope) ?? []);
    expect(settled).toMatchObject({ approvalId: approval.id, callId: call.id, state: ApprovalState.APPROVED });
    const [ended] = inbox.envelopes.flatMap((envelope) => payloadOf(CallEndedSchema, envelope) ?? []);
    const { deviceId, principalId } = call.spec;
    const functionId = "capability_exec_ts_shell";
    expect(ended).toMatchObject({
      callId: call.id,
      state: CallState.SUCCEEDED,
      tool: "exec",
      deviceId,
      principalId,
      functionId,
    });
  });
}

/** The call once the log has its end, which gets there a moment after the caller learns. */
function recorded({ registry }: Caller, { id: callId }: CompleteCall): Promise<CompleteCall> {
  return eventually(async () => {
    const call = callIn(await registry.getCall({ callId }));
    expect(call.status.outcomeAuditIndex).toBeDefined();
    return call;
  });
}

/** The proof holds for the record's bytes and for no others. */
async function expectProved({ audit }: Caller, index: bigint): Promise<void> {
  const { verifierKey } = await audit.getCheckpoint({});
  const key = parseVkey(verifierKey);
  const { text, entry } = await audit.getInclusionProof({ index });
  if (key === undefined || entry === undefined) throw new Error("the log gave no key or no record");
  expect(verifyTlogProof(text, leafHash(entry.leaf), key)).toMatchObject({ ok: true, index: Number(index) });
  const changed = Uint8Array.from(entry.leaf);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  expect(verifyTlogProof(text, leafHash(changed), key)).toMatchObject({ ok: false });
}
