import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  CallApprovalSchema,
  CallState,
  type CallStatus,
  DecisionKind,
  DecisionSummarySchema,
} from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Decision, DecisionRequest, Denial, Hold, Permit } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault, isRetryable } from "../../../lib/fault/fault.ts";
import type { DeviceLink } from "../devices/device-link.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { CallQueue } from "./call-queue.ts";
import { type CallEnd, canceledEnd, failedEnd } from "./end.ts";
import { type ExecutionPorts, endOnDevice, execute, reconcile } from "./execution.ts";
import type { Finisher } from "./finish.ts";
import { type Command, isQueueable } from "./lifecycle.ts";
import type { LiveCall } from "./live-call.ts";
import { type PreviewPorts, previewCall } from "./preview.ts";
import type { CallStore } from "./store.ts";

/** What running a call depends on. */
export interface RunPorts extends ExecutionPorts {
  store: CallStore;
  policy: PolicyLink;
  finisher: Finisher;
  /** DEVICE_LOCKED, for a device that is locked. */
  lockOf(deviceId: string): Promise<ConnectError | undefined>;
  /** Whether this replica owns a call still: another one claims what a replica owns whose lease is over. */
  isMine(callId: string): Promise<boolean>;
  queue: CallQueue;
}

/** Policy's answer: a decision, or why there is none. Without one nothing runs. */
export type PolicyAnswer = { kind: "decided"; decision: Decision } | { kind: "failed"; error: unknown };

/** Something that happened to a call, with what its next step needs. */
type Happening =
  | { event: "permit"; permit: Permit }
  | { event: "hold"; hold: Hold }
  | { event: "defer" | "resume" }
  /** `sentWith`: the grant that the call may have been sent with before this one. */
  | { event: "dispatch"; permit: Permit; link: DeviceLink; sentWith: string }
  | { event: "return"; sentWith: string }
  /** `sentWith`: empty where the call cannot have been sent, or where the end is the device's own. */
  | { event: "end"; end: CallEnd; sentWith: string };

/** What comes next; undefined where the call has ended, or is another replica's. */
type Next = Promise<Happening | undefined>;

/**
 * Asks policy; an error becomes an answer, so that the call can end truthfully. A call that would be held, and whose tool has a
 * preview, is asked about a second time, with what its device finds.
 */
export async function decide(
  question: DecisionRequest,
  ports: Pick<RunPorts, "policy"> & PreviewPorts,
  signal: AbortSignal,
): Promise<PolicyAnswer> {
  const answer = await answerOf(ports.policy.authorize(question));
  if (answer.kind === "failed" || answer.decision.outcome.case !== "preview") return answer;
  const preview = await previewCall(question, answer.decision.outcome.value, ports, signal);
  return answerOf(ports.policy.authorize({ ...question, preview }));
}

/** Runs a call from policy's first answer to its end. The call and the decision are on disk by now. */
export function runCall(live: LiveCall, answer: PolicyAnswer, ports: RunPorts): Promise<void> {
  return drive(live, afterAnswer(live, answer, ports), ports);
}

/** Goes on with a call that another process left open. */
export function resumeCall(live: LiveCall, ports: RunPorts): Promise<void> {
  return drive(live, { event: "resume" }, ports);
}

/** Takes a call through its lifecycle, a step for each thing that happens. */
async function drive(live: LiveCall, first: Happening, ports: RunPorts): Promise<void> {
  for (let happened: Happening | undefined = first; happened !== undefined; ) {
    if (happened.event === "end") return finish(live, happened, ports);
    const sentWith = live.call.status.grantId;
    const step = live.advance(happened.event, changesBy(happened));
    if (step.write === "before" && !(await ports.store.save(live.call))) return ports.finisher.overtaken(live);
    if (step.write === "lazily") ports.store.saveLazily(live.call);
    live.markDecided();
    happened = await COMMANDS[step.command](live, happened, ports, sentWith);
  }
}

function changesBy(happened: Happening): Partial<CallStatus> {
  if (happened.event === "hold") return { approval: create(CallApprovalSchema, { id: happened.hold.approvalId }) };
  if (happened.event === "permit") return { grantId: happened.permit.grantId };
  // The grant was not used; the one that it may have been sent with by a process before this stays noted.
  return happened.event === "return" ? { grantId: happened.sentWith } : {};
}

type Run = (live: LiveCall, happened: Happening, ports: RunPorts, sentWith: string) => Next;

const COMMANDS: Readonly<Record<Command, Run>> = {
  send: async (live, happened, ports, sentWith) =>
    happened.event === "permit" ? send(live, happened.permit, ports, sentWith) : undefined,
  "await-end": async (live, happened, ports) =>
    happened.event === "dispatch" ? awaitEnd(live, happened, ports) : undefined,
  "await-approval": awaitApproval,
  "await-device": awaitDevice,
  redeliver: async (live, happened, ports) =>
    ports.queue.mustQueue(live.call) ? { event: "defer" } : awaitDevice(live, happened, ports),
  reconcile: async (live, _, ports) => ({ event: "end", end: await reconcile(live, ports), sentWith: "" }),
  finish: async () => undefined,
};

/** What policy's answer means for a call. */
function afterAnswer(live: LiveCall, answer: PolicyAnswer, ports: RunPorts): Happening {
  if (answer.kind === "failed") return endUnsent(live, failedEnd(answer.error));
  const { outcome, approval } = answer.decision;
  live.call.status.decision = summaryOf(answer.decision);
  if (approval !== undefined) live.call.status.approval = approval;
  switch (outcome.case) {
    case "permit":
      return ports.queue.mustQueue(live.call) ? { event: "defer" } : { event: "permit", permit: outcome.value };
    case "hold":
      return { event: "hold", hold: outcome.value };
    case "denial":
      return endUnsent(live, deniedEnd(outcome.value));
    case "preview":
    case undefined: {
      const message = "policy sent no decision";
      return endUnsent(live, failedEnd(fault(ErrorReason.POLICY_UNAVAILABLE, {}, { message })));
    }
  }
}

function endUnsent(live: LiveCall, end: CallEnd, sentWith = live.call.status.grantId): Happening {
  return { event: "end", end, sentWith };
}

async function send(live: LiveCall, permit: Permit, ports: RunPorts, sentWith: string): Next {
  const { deviceId } = live.call.spec;
  if (live.canceled.signal.aborted) return endUnsent(live, canceledEnd(), sentWith);
  // Reported at once: a device that is locked does not come back while its caller waits.
  const isLocked = ports.device(deviceId)?.online !== true && (await ports.lockOf(deviceId)) !== undefined;
  const link = isLocked ? undefined : ports.link(deviceId);
  if (link === undefined) return endUnsent(live, endOnDevice({ kind: "offline" }, live, ports), sentWith);
  return { event: "dispatch", permit, link, sentWith };
}

async function awaitEnd(live: LiveCall, sent: Happening & { event: "dispatch" }, ports: RunPorts): Next {
  const { permit, link, sentWith } = sent;
  const end = await execute(live, permit, link);
  if (end.kind === "offline" && isQueueable(live.call)) return { event: "return", sentWith };
  return endUnsent(live, endOnDevice(end, live, ports), end.kind === "canceled" ? sentWith : "");
}

/** Waits until a person has decided about a held call, whether or not its caller still waits. */
async function awaitApproval(live: LiveCall, _: Happening, ports: RunPorts): Next {
  // Only the wait can fail here: once the call may have been sent, an error is no reason to say that it failed.
  const answer = await answerOf(ports.policy.awaitApproval(live.call.status.approval?.id ?? "", live.canceled.signal));
  if (answer.kind === "failed" && live.canceled.signal.aborted) return endUnsent(live, canceledEnd());
  // A person takes a while: the replica that owns the call by now has the same answer.
  if (!(await ports.isMine(live.call.id))) return overtaken(live, ports);
  return afterAnswer(live, answer, ports);
}

/** From a policy that does not answer to the next try to deliver, in milliseconds. */
const ASK_AGAIN_MS = 1000;

/** Waits for the device of a queued call, then asks policy again. */
async function awaitDevice(live: LiveCall, _: Happening, ports: RunPorts): Next {
  const { signal } = live.canceled;
  for (;;) {
    const turn = await ports.queue.next(live.call, live.args, signal);
    if (turn.kind === "canceled") return endUnsent(live, canceledEnd());
    if (turn.kind === "end") return endUnsent(live, turn.end);
    // It may have waited for days: the replica that owns the call by now delivers it.
    if (!(await ports.isMine(live.call.id))) return overtaken(live, ports);
    const answer = await decide(turn.question, ports, signal);
    if (answer.kind === "decided" || !isRetryable(answer.error)) return afterAnswer(live, answer, ports);
    await sleep(ASK_AGAIN_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function overtaken(live: LiveCall, { finisher }: RunPorts): Next {
  await finisher.overtaken(live);
  return undefined;
}

/**
 * Ends a call. One that a process before this may have sent, as its grant shows, is reconciled with its device first: what
 * it did there is the end that counts.
 */
async function finish(live: LiveCall, { end, sentWith }: Happening & { event: "end" }, ports: RunPorts): Promise<void> {
  if (sentWith === "") return ports.finisher.finish(live, end);
  const onDevice = await reconcile(live, ports);
  await ports.finisher.finish(live, onDevice.error?.reason === ErrorReason.NOT_STARTED ? end : onDevice);
}

async function answerOf(asked: Promise<Decision>): Promise<PolicyAnswer> {
  try {
    return { kind: "decided", decision: await asked };
  } catch (error: unknown) {
    return { kind: "failed", error };
  }
}

const DECISION_KINDS = {
  permit: DecisionKind.PERMIT,
  hold: DecisionKind.HOLD,
  denial: DecisionKind.DENIAL,
  preview: DecisionKind.PREVIEW,
} as const;

function summaryOf({ outcome, ruleIds, policyVersion, auditIndex }: Decision) {
  const kind = outcome.case === undefined ? DecisionKind.UNSPECIFIED : DECISION_KINDS[outcome.case];
  return create(DecisionSummarySchema, { kind, ruleIds, policyVersion, auditIndex });
}

/** A denial's end: by policy or by a person, or that no approver decided in time. */
function deniedEnd(denial: Denial): CallEnd {
  const metadata = { ...denial.metadata, ...(denial.approvalId === "" ? {} : { approval_id: denial.approvalId }) };
  const error = fault(denial.reason, metadata, { message: denial.userMessage });
  const state = denial.reason === ErrorReason.APPROVAL_EXPIRED ? CallState.EXPIRED : CallState.DENIED;
  return { ...failedEnd(error), state };
}
