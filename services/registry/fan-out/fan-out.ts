import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import {
  type FanOutRequest,
  type FanOutResponse,
  FanOutResponseSchema,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import type { AwaitedCall } from "../calls/at-rest.ts";
import type { Calls } from "../calls/calls.ts";
import { type Face, observedIngress } from "../calls/ingress.ts";
import type { CallWish } from "../calls/receive.ts";
import { scopedId } from "../calls/scoped-id.ts";
import type { Directory } from "../devices/directory.ts";
import type { PolicyLink } from "../policy/policy-link.ts";
import { chooseDevices } from "./choose.ts";
import { askForWhole, type Permission } from "./permission.ts";
import { type PlannedDevice, planWaves, type Waves } from "./plan.ts";
import { prepareAll, type Receive } from "./prepare.ts";
import { type Stop, stopAfterWave, summaryOf } from "./progress.ts";
import { runWave } from "./run-wave.ts";
import type { FanOutStore, StoredFanOut } from "./store.ts";

/** What fan-outs rest on. */
export interface FanOutPorts {
  calls: Pick<Calls, "begin" | "find">;
  directory: Pick<Directory, "all" | "resolve">;
  receive: Receive;
  policy: Pick<PolicyLink, "authorize" | "awaitApproval">;
  store: FanOutStore;
  newFanOutId(): string;
  /** Aborted when the registry closes: no further wave is started, and callers try again elsewhere. */
  closing: AbortSignal;
}

/** How long a human is waited for by default, in milliseconds. */
const DEFAULT_WAIT_MS = 60_000;

/** The most characters of a fan-out's id: a device's id follows it in the ids of its calls. */
const MAX_ID = 40;

/** Somebody's fan-out on its way. */
interface Run {
  request: FanOutRequest;
  principal: Principal;
  /** By which it came in. */
  face: Face;
  stored: StoredFanOut;
  /** It began before: its calls may be there already. */
  isOld: boolean;
  ports: FanOutPorts;
  waitMs: number;
  signal: AbortSignal;
}

/**
 * Calls one tool on many devices, wave by wave, and yields what happens as it comes; the summary is the last. The plan is
 * written down before anything starts, so that the same id again goes on where it stood: calls that began are found, and
 * policy is asked again only where it had not permitted the whole. When the signal aborts no further wave is started.
 *
 * Throws what is wrong with the selection, the tool or its arguments before anything was written, CALL_ID_REUSED for the
 * id of another fan-out, POLICY_UNAVAILABLE, and NOT_READY when the registry closes.
 */
export async function* fanOut(
  request: FanOutRequest,
  principal: Principal,
  ports: FanOutPorts,
  signal: AbortSignal,
  face: Face = Ingress.RPC,
): AsyncGenerator<FanOutResponse> {
  const { stored, isOld } = await planned(request, principal, face, ports);
  const { id, waves } = stored;
  const waitMs = request.waitMs === 0 ? DEFAULT_WAIT_MS : request.waitMs;
  const run = {
    request,
    principal,
    face,
    stored,
    isOld,
    ports,
    waitMs,
    signal: AbortSignal.any([signal, ports.closing]),
  };
  yield response({ case: "plan", value: { fanOutId: id, waves: waves.map(waveOf) } });

  const permission = yield* permitted(run);
  if (permission.kind === "refused") {
    const stop = { error: permission.error, message: permission.message };
    return yield response({ case: "summary", value: summaryOf(id, waves, new Map(), stop) });
  }
  const results = new Map<string, Call>();
  let stop: Stop | undefined;
  for (const [index, wave] of waves.entries()) {
    stop = index === 0 ? undefined : stopAfterWave(stopRulesOf(run), index, results);
    if (stop !== undefined) break;
    endWhereLeft(run);
    yield response({ case: "wave", value: waveOf(wave, index) });
    endWhereLeft(run);
    const begin = (device: PlannedDevice) => beginOn(device, permission.approvalId, run);
    const ended = yield* runWave(wave, { fanOutId: id, begin, waitMs, signal: run.signal });
    for (const [device, call] of ended) results.set(device, call);
    endWhereLeft(run);
  }
  yield response({ case: "summary", value: summaryOf(id, waves, results, stop) });
}

/** The plan: what was written down under this id before, or a new one. */
async function planned(
  request: FanOutRequest,
  principal: Principal,
  face: Face,
  ports: FanOutPorts,
): Promise<{ stored: StoredFanOut; isOld: boolean }> {
  const ownerOf = async (id: string) => (await ports.store.find(id))?.principalId;
  const id =
    request.fanOutId === ""
      ? ports.newFanOutId()
      : await scopedId(request.fanOutId, principal, { maxLength: MAX_ID, ownerOf });
  const wanted = { id, principalId: principal.id, digest: digestOf(request) };
  const old = request.fanOutId === "" ? undefined : await ports.store.find(id);
  if (old !== undefined) return { stored: same(old, wanted), isOld: true };
  const devices = chooseDevices(request, ports.directory).map(({ id: deviceId, name }) => ({ id: deviceId, name }));
  const stored = { ...wanted, waves: planWaves(devices, request), permission: undefined };
  await questionOf({ request, principal, face, stored }, ports.receive);
  if (await ports.store.insert(stored)) return { stored, isOld: false };
  const twin = await ports.store.find(id);
  if (twin === undefined) throw reused(id);
  return { stored: same(twin, wanted), isOld: true };
}

/** Policy's word about the whole, which is asked for once. */
async function* permitted(run: Run): AsyncGenerator<FanOutResponse, Permission> {
  const { stored, ports, waitMs, signal } = run;
  if (stored.permission !== undefined) return { kind: "permitted", ...stored.permission };
  const question = await questionOf(run, ports.receive);
  const asking = askForWhole(question, { policy: ports.policy, waitMs, signal });
  // Who waited in vain, since the caller left or the registry closes, is told that and nothing of the wait.
  const next = () =>
    asking.next().catch((error: unknown): never => {
      endWhereLeft(run);
      throw error;
    });
  let step = await next();
  for (; step.done !== true; step = await next()) {
    const { approvalId, message } = step.value;
    yield response({ case: "held", value: { approvalId, message } });
  }
  if (step.value.kind === "permitted") await ports.store.permit(stored.id, step.value.approvalId);
  return step.value;
}

function questionOf(run: Pick<Run, "request" | "principal" | "face" | "stored">, receive: Receive) {
  const wishes = run.stored.waves.flat().map((device) => ({ device, wish: wishFor(device, "", run) }));
  return prepareAll(run.stored.id, wishes, receive);
}

async function beginOn(device: PlannedDevice, approvalId: string, run: Run): Promise<AwaitedCall> {
  const wish = wishFor(device, approvalId, run);
  // Found by its id first: the tool may be gone from a device that has run it.
  return (run.isOld ? await found(wish, run) : undefined) ?? run.ports.calls.begin(wish);
}

function found({ callId }: CallWish, { ports, principal }: Run): Promise<AwaitedCall | undefined> {
  return ports.calls.find(callId, principal).catch((error: unknown) => {
    if (reasonOf(error) === ErrorReason.NOT_FOUND) return undefined;
    throw error;
  });
}

function wishFor(
  { id }: PlannedDevice,
  approvalId: string,
  { request, principal, face, stored }: Pick<Run, "request" | "principal" | "face" | "stored">,
): CallWish {
  return {
    device: id,
    tool: request.tool,
    params: request.params ?? {},
    chosenId: "",
    callId: fanOutCallId(stored.id, id),
    purpose: request.purpose,
    ingress: observedIngress(face, principal),
    client: request.client,
    principal,
    fanOutId: stored.id,
    approvalId,
    queueSeconds: request.queueSeconds,
  };
}

function stopRulesOf({ request, stored }: Run) {
  const stopAfterFailures = request.stopAfterFailures === 0 ? 1 : request.stopAfterFailures;
  return { fanOutId: stored.id, canary: request.canary > 0, stopAfterFailures };
}

/** Ends the stream where whoever asked has left, or has to ask another replica. */
function endWhereLeft({ ports, signal, stored }: Run): void {
  if (ports.closing.aborted) {
    const message = `the registry closes; try again with the id ${stored.id}, which goes on where it stands`;
    throw fault(ErrorReason.NOT_READY, {}, { message });
  }
  signal.throwIfAborted();
}

/** Everything that makes two requests with one id the same fan-out. */
function digestOf(request: FanOutRequest): string {
  const { selector, devices, tool, params = {}, waveSize, canary, maxDevices, purpose } = request;
  const { stopAfterFailures, queueSeconds } = request;
  const sizes = [waveSize, canary, maxDevices, stopAfterFailures, queueSeconds];
  return sha256Hex(canonicalJson([selector, devices, tool, params, sizes, purpose]));
}

function same(old: StoredFanOut, wanted: Pick<StoredFanOut, "id" | "principalId" | "digest">): StoredFanOut {
  if (old.principalId === wanted.principalId && old.digest === wanted.digest) return old;
  throw reused(wanted.id);
}

function reused(id: string): Error {
  const message = `the id ${id} was used for another fan-out`;
  return fault(ErrorReason.CALL_ID_REUSED, { call_id: id }, { message });
}

function waveOf(wave: Waves[number], index: number) {
  return { number: index + 1, devices: wave.map(({ name }) => name) };
}

function response(event: MessageInitShape<typeof FanOutResponseSchema>["event"] & object): FanOutResponse {
  return create(FanOutResponseSchema, { event });
}
