import { setTimeout as sleep } from "node:timers/promises";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import type { AuditRecord as LogRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Device } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { inScope } from "../../lib/auth/scoped-id.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { Distributed } from "../../testkit/distributed.ts";
import { createApprover } from "./approver.ts";
import { breakParts } from "./break-parts.ts";
import { type Callers, createCallers } from "./callers.ts";
import { readRecords } from "./evidence.ts";
import { type Gathered, gather, marksOf } from "./gather.ts";
import { createParts, type Parts } from "./parts.ts";
import { type PlannedCall, planCalls } from "./planned-calls.ts";
import { type Return, watchReturns } from "./returns.ts";
import type { ChaosSettings } from "./settings.ts";

/** What came of a run, once everything was mended and calm. */
export interface ChaosResult extends Gathered {
  /** Calls whose caller learned of no end, or got an error that no trying again helps against; in words. */
  unheard: string[];
  /** Services that ended by themselves, or neither came up nor ended when they were started. */
  accidents: readonly string[];
  /** Starts that failed and were tried again. */
  retries: readonly string[];
  /** Devices that did not come back at all. */
  offline: string[];
  returns: readonly Return[];
  faults: ReadonlyMap<string, number>;
  errors: ReadonlyMap<string, number>;
  durationMs: number;
}

/** How long after the last fault every call must have ended, in milliseconds: longer than a lost device is waited for. */
const ENDING_MS = 150_000;

/** How long the last device may take to come back, and the audit log to get the last outcome, in milliseconds. */
const CALM_MS = 60_000;

/**
 * Makes all calls while everything breaks, waits until all is calm, and gathers what everybody says. Stops the devices.
 *
 * @param say receives what happens, a line each.
 */
export async function runChaos(
  plane: Distributed,
  settings: ChaosSettings,
  say: (line: string) => void,
): Promise<ChaosResult> {
  const { seed } = settings;
  const plannedCalls = planCalls({ ...settings, marks: marksOf(plane) });
  const parts = createParts(plane);
  const registries = plane.registries.map(({ url }) => registryAt(url, plane));
  const watch = watchReturns({ devices: plane.devices, parts: parts.all, list: () => listDevices(registries, parts) });
  const operator = { token: plane.tokens.operator, ca: plane.ca, seed };
  const storedId = await storedIdsOf(plane);
  const answers = new Map(plannedCalls.map((planned) => [storedId(planned), planned.answer]));
  const approver = createApprover({ ...operator, urls: urlsOf(plane.policies), answer: (id) => answers.get(id) });
  const callers = createCallers({ ...plane, urls: [plane.registry.url, ...urlsOf(plane.registries)], seed });

  const started = performance.now();
  const attending = attendAll(plannedCalls, callers, started);
  const breaker = breakParts(parts.all, seed, say, (part, { kind }) => watch.broken(part, `${kind} of ${part.name}`));
  const supervising = setInterval(() => void parts.supervise().catch(() => undefined), 500);
  await sleep(settings.ms);
  await breaker.stop();
  say(`everything is mended; callers wait for ${attending.unheard.size} calls`);
  await Promise.race([attending.all, sleep(ENDING_MS, undefined, { ref: false })]);
  clearInterval(supervising);
  const durationMs = performance.now() - started;
  await waitUntil(CALM_MS, async () => watch.offline().length === 0);
  await watch.stop();
  callers.close();
  await approver.close();
  say("looking at what everybody says");

  const shown: (CompleteCall | undefined)[][] = [];
  for (const planned of plannedCalls) {
    shown.push(await Promise.all(registries.map((registry) => show(registry, storedId(planned)))));
  }
  await waitUntil(CALM_MS, async () => isRecorded(shown, await readRecords(plane.policyDatabase)));
  return {
    ...(await gather(plane, { plannedCalls, storedId, reported: attending.reported, shown })),
    unheard: [...attending.unheard.values()],
    accidents: parts.accidents,
    retries: parts.retries,
    offline: watch.offline(),
    returns: watch.returns,
    faults: breaker.counts,
    errors: callers.errors,
    durationMs,
  };
}

/** Makes all calls, each at its time. */
function attendAll(plannedCalls: readonly PlannedCall[], callers: Callers, startMs: number) {
  const reported = new Map<string, CompleteCall>();
  const unheard = new Map<string, string>(plannedCalls.map(({ id }) => [id, `${id}: its caller waits still`]));
  const attend = async (planned: PlannedCall): Promise<void> => {
    try {
      reported.set(planned.id, await callers.attend(planned, startMs));
      unheard.delete(planned.id);
    } catch (error: unknown) {
      unheard.set(planned.id, error instanceof Error ? error.message : String(error));
    }
  };
  return { reported, unheard, all: Promise.all(plannedCalls.map(attend)) };
}

function urlsOf(services: readonly { url: string }[]): string[] {
  return services.map(({ url }) => url);
}

/** The devices as the first registry that is up shows them. */
async function listDevices(registries: readonly RegistryClient[], { all }: Parts): Promise<Device[]> {
  const client = registries.find((_, n) => all.some(({ name, up }) => name === `registry ${n}` && up));
  if (client === undefined) throw new Error("no registry is up");
  return (await client.listDevices({}, { timeoutMs: 1000 })).devices;
}

/** The id under which a call is stored: an agent's own one is in its scope. */
async function storedIdsOf(plane: Distributed): Promise<(planned: PlannedCall) => string> {
  const { principalId } = await registryAt(plane.registry.url, plane, plane.tokens.agent).whoAmI({});
  return ({ as, id }) => (as === "agent" ? inScope(id, principalId) : id);
}

function registryAt(baseUrl: string, { tokens, ca }: Distributed, token = tokens.operator): RegistryClient {
  const transport = createServiceTransport({
    baseUrl,
    token,
    ca,
    pingIntervalMs: 1000,
    pingTimeoutMs: 1000,
    connectTimeoutMs: 1000,
  });
  return registryClient(transport);
}

/** The call as a registry shows it; undefined where it does not know it. Rejects where it does not answer. */
async function show(registry: RegistryClient, callId: string): Promise<CompleteCall | undefined> {
  try {
    const { call } = await registry.getCall({ callId }, { timeoutMs: 30_000 });
    return call && completeCall(call);
  } catch (error: unknown) {
    if (reasonOf(error) === ErrorReason.NOT_FOUND) return undefined;
    throw error;
  }
}

/** Whether the log has an outcome for each call that is to have one. */
function isRecorded(
  shown: readonly (readonly (CompleteCall | undefined)[])[],
  records: ReadonlyMap<string, LogRecord[]>,
): boolean {
  return shown.every(([call]) => {
    if (call === undefined) return true;
    if (call.status.state === CallState.DENIED || call.status.state === CallState.EXPIRED) return true;
    return records.get(call.id)?.some(({ event }) => event.case === "outcome") ?? false;
  });
}

/** Waits for something, and goes on without it after so long: what is missing then is found by what is checked. */
async function waitUntil(ms: number, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + ms;
  while (performance.now() < deadline && !(await holds())) await sleep(200);
}
