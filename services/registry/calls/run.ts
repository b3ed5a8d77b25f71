import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { CallState, DecisionKind, DecisionSummarySchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecuteCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Decision, DecisionRequest, Denial, Hold, Permit } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault, isRetryable } from "../../../lib/fault/fault.ts";
import type { DeviceEnd, DeviceLink } from "../devices/device-link.ts";
import type { KnownDevice } from "../devices/linked-device.ts";
import type { PolicyLink } from "../policy/policy-link.ts";
import { isToBeKept, type Queue } from "../queue/queue.ts";
import { acceptFinished, type CallEnd, failedEnd } from "./end.ts";
import type { Finisher } from "./finish.ts";
import type { LiveCall } from "./live-call.ts";
import { settleCall } from "./settle.ts";
import type { CallStore } from "./store.ts";

/** What the life of a call rests on. */
export interface RunPorts {
  store: CallStore;
  policy: PolicyLink;
  finisher: Finisher;
  device(id: string): KnownDevice | undefined;
  link(deviceId: string): DeviceLink | undefined;
  /** DEVICE_LOCKED, for a device that is locked. */
  lockOf(deviceId: string): Promise<ConnectError | undefined>;
  /** Whether this replica leads a call still: another one takes over what a replica leads whose lease is over. */
  isMine(callId: string): Promise<boolean>;
  /** Keeps calls for devices that are away. */
  queue: Queue;
}

/**
 * The life of a call from policy's answer to its end: on to the device, to a human, or nowhere. Both the call and the
 * decision are on disk by now.
 */
export async function followDecision(live: LiveCall, answer: PolicyAnswer, ports: RunPorts): Promise<void> {
  if (answer.kind === "failed") return finishUnsent(live, failedEnd(answer.error), ports);
  const { decision } = answer;
  summarize(live, decision);
  switch (decision.outcome.case) {
    case "permit":
      return dispatch(live, decision.outcome.value, ports);
    case "hold":
      return hold(live, decision.outcome.value, ports);
    case "denial":
      return finishUnsent(live, deniedEnd(decision.outcome.value), ports);
    case undefined:
      return finishUnsent(
        live,
        failedEnd(fault(ErrorReason.POLICY_UNAVAILABLE, {}, { message: "policy sent no decision" })),
        ports,
      );
  }
}

/** What came back from policy: a decision, or why there is none. Without one nothing runs. */
export type PolicyAnswer = { kind: "decided"; decision: Decision } | { kind: "failed"; error: unknown };

/** Asks policy; an error becomes an answer, so that the call can end truthfully. */
export async function decide(question: DecisionRequest, ports: Pick<RunPorts, "policy">): Promise<PolicyAnswer> {
  try {
    return { kind: "decided", decision: await ports.policy.authorize(question) };
  } catch (error: unknown) {
    return { kind: "failed", error };
  }
}

async function hold(live: LiveCall, held: Hold, ports: RunPorts): Promise<void> {
  live.call.approvalId = held.approvalId;
  live.enter(CallState.HELD);
  if (!(await ports.store.save(live.call))) return ports.finisher.overtaken(live);
  live.markDecided();
  await awaitApproval(live, ports);
}

/** Waits until a human has decided about a held call, whoever has left meanwhile. */
export async function awaitApproval(live: LiveCall, ports: RunPorts): Promise<void> {
  // Only the wait can fail here: once the call may have been sent, an error is no reason to say that it failed.
  const answer = await awaitDecision(live, ports);
  if (answer.kind === "failed" && live.canceled.signal.aborted) return finishUnsent(live, canceledEnd(), ports);
  // A human takes a while: whoever leads the call by now has been told the same.
  if (!(await ports.isMine(live.call.id))) return ports.finisher.overtaken(live);
  await followDecision(live, answer, ports);
}

async function awaitDecision(live: LiveCall, { policy }: Pick<RunPorts, "policy">): Promise<PolicyAnswer> {
  try {
    return { kind: "decided", decision: await policy.awaitApproval(live.call.approvalId, live.canceled.signal) };
  } catch (error: unknown) {
    return { kind: "failed", error };
  }
}

async function dispatch(live: LiveCall, permit: Permit, ports: RunPorts): Promise<void> {
  if (ports.queue.mustKeep(live.call)) return keep(live, ports);
  const earlier = live.call.grantId;
  // On disk it may wait still, for a human or its device: whoever reads that must not think that it was never sent.
  const mayWait = live.call.state === CallState.HELD || isToBeKept(live.call);
  live.call.grantId = permit.grantId;
  live.enter(CallState.PERMITTED);
  if (mayWait && !(await ports.store.save(live.call))) return ports.finisher.overtaken(live);
  live.markDecided();
  if (live.canceled.signal.aborted) return finishUnsent(live, canceledEnd(), ports, earlier);
  // Told at once: a device that is locked does not come back while its caller waits.
  const away = ports.device(live.call.deviceId)?.online !== true;
  if (away && (await ports.lockOf(live.call.deviceId)) !== undefined)
    return finishUnsent(live, endOfLink({ kind: "offline" }, live, ports), ports, earlier);
  const link = ports.link(live.call.deviceId);
  if (link === undefined) return finishUnsent(live, endOfLink({ kind: "offline" }, live, ports), ports, earlier);
  live.enter(CallState.DISPATCHED);
  ports.store.saveLazily(live.call);
  const onCancel = () => link.cancel(live.call.id);
  live.canceled.signal.addEventListener("abort", onCancel, { once: true });
  const start = create(ExecuteCommandSchema, {
    callId: live.call.id,
    tool: live.call.tool,
    arguments: live.args,
    ...(permit.grant === undefined ? {} : { grant: permit.grant }),
  });
  const cleaner = ports.finisher.outputCleaner();
  const end = await link.start(start, (output) => live.print(cleaner.clean(output)), live.followers);
  for (const output of cleaner.rest()) void live.print(output);
  live.canceled.signal.removeEventListener("abort", onCancel);
  if (end.kind === "offline" && isToBeKept(live.call)) {
    live.call.grantId = earlier;
    return keep(live, ports);
  }
  if (end.kind === "canceled") return finishUnsent(live, endOfLink(end, live, ports), ports, earlier);
  await ports.finisher.finish(live, endOfLink(end, live, ports));
}

/**
 * Ends a call that is not sent. One that a process before this may have sent, as the grant shows that it was given, is
 * settled with its device first: what it did there is the end that counts.
 *
 * @param grantId the grant that it may have been sent with; empty where it cannot have been.
 */
async function finishUnsent(live: LiveCall, end: CallEnd, ports: RunPorts, grantId = live.call.grantId): Promise<void> {
  if (grantId === "") return ports.finisher.finish(live, end);
  const settled = endOfLink(await settleCall(live, ports), live, ports);
  await ports.finisher.finish(live, settled.error?.reason === ErrorReason.NOT_STARTED ? end : settled);
}

/**
 * Keeps a call for its device. A grant that it has been given is not used, since there is a new one when the device is back;
 * one that it may have been sent with by a process before this stays noted.
 */
export async function keep(live: LiveCall, ports: RunPorts): Promise<void> {
  live.enter(CallState.QUEUED);
  if (!(await ports.store.save(live.call))) return ports.finisher.overtaken(live);
  live.markDecided();
  await deliver(live, ports);
}

/** From a policy that does not answer to the next try to deliver, in milliseconds. */
const ASK_AGAIN_MS = 1000;

/** Waits for the device of a kept call, then asks policy again and goes on as it says. */
export async function deliver(live: LiveCall, ports: RunPorts): Promise<void> {
  const { queue, finisher } = ports;
  const { signal } = live.canceled;
  for (;;) {
    const turn = await queue.next(live.call, live.args, signal);
    if (turn.kind === "canceled") return finishUnsent(live, canceledEnd(), ports);
    if (turn.kind === "end") return finishUnsent(live, turn.end, ports);
    // It may have waited for days: whoever leads the call by now delivers it.
    if (!(await ports.isMine(live.call.id))) return finisher.overtaken(live);
    const answer = await decide(turn.question, ports);
    if (answer.kind === "decided" || !isRetryable(answer.error)) return followDecision(live, answer, ports);
    await sleep(ASK_AGAIN_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What a device link's end means for the call. */
export function endOfLink(end: DeviceEnd, live: LiveCall, ports: Pick<RunPorts, "device">): CallEnd {
  const device = ports.device(live.call.deviceId);
  switch (end.kind) {
    case "finished":
      return acceptFinished(end.finished, live.call, device);
    case "offline":
      return failedEnd(
        fault(
          ErrorReason.DEVICE_OFFLINE,
          { device: device?.name ?? live.call.deviceId },
          {
            message: `${device?.name ?? live.call.deviceId} is not linked; nothing ran${end.why ? `: ${end.why}` : ""}`,
          },
        ),
      );
    case "canceled":
      return canceledEnd();
    case "lost":
      return {
        ...failedEnd(
          fault(
            ErrorReason.INTERRUPTED,
            { device: device?.name ?? live.call.deviceId },
            { message: "the device went away after the call was sent; what it did is not known" },
          ),
        ),
        state: CallState.UNKNOWN,
      };
  }
}

const DECISION_KINDS: Readonly<Record<string, DecisionKind>> = {
  permit: DecisionKind.PERMIT,
  hold: DecisionKind.HOLD,
  denial: DecisionKind.DENIAL,
};

function summarize(live: LiveCall, decision: Decision): void {
  live.call.decision = create(DecisionSummarySchema, {
    kind: DECISION_KINDS[decision.outcome.case ?? ""] ?? DecisionKind.UNSPECIFIED,
    ruleIds: decision.ruleIds,
    policyVersion: decision.policyVersion,
    auditIndex: decision.auditIndex,
  });
}

/** A denial's end: what a rule said, what a human said, or that nobody said anything. */
function deniedEnd(denial: Denial): CallEnd {
  const metadata = { ...denial.metadata, ...(denial.approvalId === "" ? {} : { approval_id: denial.approvalId }) };
  const error = fault(denial.reason, metadata, { message: denial.userMessage });
  const state = denial.reason === ErrorReason.APPROVAL_EXPIRED ? CallState.EXPIRED : CallState.DENIED;
  return { ...failedEnd(error), state };
}

function canceledEnd(): CallEnd {
  const error = fault(ErrorReason.CANCELED, { by: "caller" }, { message: "canceled before it was started" });
  return { ...failedEnd(error), state: CallState.CANCELED };
}
