import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type FanOutSpec, FanOutState } from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { Decision, DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault, faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import type { Calls, EndedCall } from "../calls/calls.ts";
import type { GovernedCall } from "../calls/governed-call.ts";
import type { OpenCall } from "../calls/live-call.ts";
import type { CallRequest } from "../calls/receive.ts";
import type { TokenStatuses } from "../calls/token-statuses.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { PlannedDevice } from "./plan.ts";
import { prepareAll, type Receive } from "./prepare.ts";
import { type Stop, stopAfterWave, summaryOf } from "./progress.ts";
import { runWave } from "./run-wave.ts";
import type { FanOutStore, Progress, StoredFanOut } from "./store.ts";

/** What running a fan-out uses. */
export interface RunPorts {
  calls: Pick<Calls, "begin" | "find" | "outputOf">;
  receive: Receive;
  policy: Pick<PolicyLink, "authorize" | "awaitApproval" | "recordOutcome">;
  store: FanOutStore;
  /** Whether the principal may still ask. */
  tokenStatuses: TokenStatuses;
  now(): number;
}

/** A fan-out that this replica goes on with. */
interface Run {
  one: StoredFanOut;
  ports: RunPorts;
  /** Aborted when the registry closes: the replica that claims it goes on. */
  closing: AbortSignal;
  /** Aborted when its cancellation was requested. */
  canceled: AbortSignal;
}

/** This replica is not the owner any more, or closes: another one goes on. */
class LetGo extends Error {}

/**
 * Goes on with a fan-out to its end, from wherever it is: permission, then wave by wave. What was done before is found
 * again: policy's decision and every call have ids that follow from the fan-out's. Resolves when it has ended, or when
 * another replica has to go on with it.
 */
export async function runFanOut(run: Run): Promise<void> {
  const { one, ports, canceled } = run;
  const results = new Map<string, GovernedCall>();
  const end = async (state: FanOutState, stop: Stop | undefined) => {
    await ports.store.end(one, state, summaryOf(one.id, one.waves, results, stop), ports.now());
  };
  try {
    const permission = await permitted(run);
    if ("stop" in permission) return await end(permission.state, permission.stop);
    const stop = await callWaves(run, permission.approvalId, results);
    if (canceled.aborted) return await end(FanOutState.CANCELED, stop ?? canceledStop(one.id));
    const { succeeded } = summaryOf(one.id, one.waves, results, stop);
    await end(succeeded ? FanOutState.SUCCEEDED : FanOutState.FAILED, stop);
  } catch (error: unknown) {
    if (error instanceof LetGo || run.closing.aborted) return;
    if (canceled.aborted) return end(FanOutState.CANCELED, canceledStop(one.id));
    if (faultDetail(error) === undefined) throw error;
    await end(FanOutState.FAILED, stopOf(error));
  }
}

async function callWaves(run: Run, approvalId: string, results: Map<string, GovernedCall>): Promise<Stop | undefined> {
  const { one, closing, canceled } = run;
  for (const [index, wave] of one.waves.entries()) {
    if (canceled.aborted) return canceledStop(one.id);
    const stop = (index === 0 ? undefined : stopAfterWave(stopRulesOf(one), index, results)) ?? (await revoked(run));
    if (stop !== undefined) return stop;
    await note(run, { state: FanOutState.RUNNING, startedWaves: index + 1 });
    const callOn = (device: PlannedDevice) => beginOn(device, approvalId, run);
    const ended = await runWave(wave, { fanOutId: one.id, callOn, signal: closing });
    if (closing.aborted) throw new LetGo();
    for (const [device, call] of ended) results.set(device, call);
    await note(run, { summary: summaryOf(one.id, one.waves, results, undefined) });
  }
  return undefined;
}

type Permission = { approvalId: string } | { state: FanOutState; stop: Stop };

/** Policy's decision about all devices, which is asked for once and may wait for a human. */
async function permitted(run: Run): Promise<Permission> {
  const { one, ports, closing, canceled } = run;
  if (one.permitted) return { approvalId: one.approvalId };
  let approvalId = one.state === FanOutState.HELD ? one.approvalId : "";
  let decision: Decision | undefined;
  if (approvalId === "") {
    decision = await ports.policy.authorize(await questionAbout(one, ports.receive));
    if (decision.outcome.case === "hold") {
      ({ approvalId } = decision.outcome.value);
      await note(run, { state: FanOutState.HELD, approvalId });
    }
  }
  if (approvalId !== "") {
    decision = await ports.policy
      .awaitApproval(approvalId, AbortSignal.any([closing, canceled]))
      .catch((error: unknown) => withdrawn(run, error));
  }
  if (decision?.outcome.case === "permit") {
    await note(run, { permitted: true, approvalId });
    return { approvalId };
  }
  return { state: FanOutState.DENIED, stop: denialOf(decision) };
}

/**
 * Policy cancels the approval of what has ended. It knows the fan-out as a call of this id; the same outcome is the same
 * record where another replica, or the next start, repeats it. Rejects with the error of the wait.
 */
async function withdrawn({ one, ports, closing, canceled }: Run, error: unknown): Promise<never> {
  closing.throwIfAborted();
  if (canceled.aborted) {
    const outcome = create(CallOutcomeSchema, { callId: one.id, tool: one.spec.tool, state: CallState.CANCELED });
    await Promise.race([ports.policy.recordOutcome(outcome), aborted(closing)]);
  }
  throw error;
}

function denialOf(decision: Decision | undefined): Stop {
  if (decision?.outcome.case !== "denial") {
    const error = create(ErrorDetailSchema, { reason: ErrorReason.POLICY_UNAVAILABLE });
    return { error, message: "policy sent no decision" };
  }
  const { reason, userMessage, approvalId, metadata } = decision.outcome.value;
  const more = approvalId === "" ? {} : { approval_id: approvalId };
  return { error: create(ErrorDetailSchema, { reason, metadata: { ...metadata, ...more } }), message: userMessage };
}

/** The question about all devices. Throws what is wrong with the call on one of them. */
export function questionAbout(one: Origin, receive: Receive): Promise<DecisionRequest> {
  const requests = one.waves.flat().map((device) => ({ device, request: requestFor(device, "", one) }));
  return prepareAll(one.id, requests, receive);
}

type Origin = Pick<StoredFanOut, "id" | "spec" | "principal" | "ingress" | "waves">;

async function beginOn(device: PlannedDevice, approvalId: string, { one, ports, canceled }: Run) {
  // Found by its id first: the tool may be gone from a device that has run it.
  const known = await findCall(one, device, ports.calls);
  if (known === undefined && canceled.aborted) throw fault(ErrorReason.CANCELED, { fan_out_id: one.id });
  const call: OpenCall | EndedCall = known ?? (await ports.calls.begin(requestFor(device, approvalId, one)));
  const cancel = () => {
    if (isOpen(call)) call.canceled.abort();
  };
  if (canceled.aborted) cancel();
  else canceled.addEventListener("abort", cancel, { once: true });
  return call;
}

/** The call on a device; undefined where it did not begin, or never became one. */
export async function findCall(
  one: Pick<StoredFanOut, "id" | "principal">,
  device: PlannedDevice,
  calls: Pick<Calls, "find">,
): Promise<OpenCall | EndedCall | undefined> {
  try {
    return await calls.find(fanOutCallId(one.id, device.id), one.principal);
  } catch (error: unknown) {
    if (reasonOf(error) === ErrorReason.NOT_FOUND) return undefined;
    throw error;
  }
}

function requestFor({ id }: PlannedDevice, approvalId: string, one: Origin): CallRequest {
  const { spec, principal, ingress } = one;
  return {
    device: id,
    tool: spec.tool,
    params: spec.params ?? {},
    chosenId: "",
    callId: fanOutCallId(one.id, id),
    purpose: spec.purpose,
    ingress,
    client: spec.client,
    principal,
    fanOutId: one.id,
    approvalId,
    queueMs: queueMsOf(spec),
  };
}

/** Writes how far it has got. Throws where another replica has claimed it. */
async function note({ one, ports }: Run, progress: Progress): Promise<void> {
  if (!(await ports.store.progress(one.id, progress))) throw new LetGo();
}

/** Nothing is called in the name of a principal whose token was revoked or has expired meanwhile. */
async function revoked({ one, ports }: Run): Promise<Stop | undefined> {
  const status = await ports.tokenStatuses(one.principal.id);
  if (status.valid) return undefined;
  const error = create(ErrorDetailSchema, { reason: ErrorReason.TOKEN_REFUSED, metadata: { why: status.why } });
  return { error, message: `the token that started it is ${status.why}` };
}

/** How long its calls may wait for a device that is offline, in milliseconds. */
export function queueMsOf({ queueTimeout }: FanOutSpec): number {
  return queueTimeout ? durationMs(queueTimeout) : 0;
}

function stopRulesOf({ id, spec }: StoredFanOut) {
  const stopAfterFailures = spec.stopAfterFailures === 0 ? 1 : spec.stopAfterFailures;
  return { fanOutId: id, canary: spec.canary > 0, stopAfterFailures };
}

function canceledStop(fanOutId: string): Stop {
  const error = create(ErrorDetailSchema, { reason: ErrorReason.CANCELED, metadata: { fan_out_id: fanOutId } });
  return { error, message: "it was canceled" };
}

function stopOf(thrown: unknown): Stop {
  return {
    error: faultDetail(thrown) ?? create(ErrorDetailSchema, { reason: ErrorReason.INTERNAL }),
    message: ConnectError.from(thrown).rawMessage,
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

function isOpen(call: OpenCall | EndedCall): call is OpenCall {
  return "canceled" in call;
}
