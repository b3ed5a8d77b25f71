import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallOutcome } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  FanOutState,
  type FanOutSummary,
  StartFanOutRequestSchema,
  type WatchFanOutResponse,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { inScope } from "../../../lib/auth/scoped-id.ts";
import type { TokenStatus } from "../../../lib/auth/token-status.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import type { FanOutRequest } from "../../../testkit/fan-outs.ts";
import { createLiveCall, type LiveCall } from "../calls/live-call.ts";
import { type CallRequest, receiveCall } from "../calls/receive.ts";
import { createDeviceIndex } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createFanOuts, type FanOutPorts, type FanOuts } from "./fan-outs.ts";
import type { StoredFanOut } from "./store.ts";
import { createFanOutStore } from "./store.ts";
import { watchFanOut } from "./watch.ts";

const AGENT: Principal = { id: "agent-1", kind: "agent", roles: [Role.AGENT], name: "agent" };
/** The id of the fan-out that AGENT calls "f". */
const F = inScope("f", AGENT.id, 40);

/** How the call on a device goes. */
type Course = "ok" | "exit 1" | "failed" | "queued" | "held" | "refused" | "open";

let db: Database<RegistryTables>;
let writes: GroupCommit<RegistryTables>;
let began: CallRequest[];
let asked: DecisionRequest[];
let outcomes: CallOutcome[];
let status: TokenStatus;
/** What was started, to be closed. */
let opened: FanOuts[];
/** Every call by id, as the store of calls would have it. */
let calls: Map<string, LiveCall>;

beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  writes = createGroupCommit(db);
  began = [];
  asked = [];
  outcomes = [];
  calls = new Map();
  status = { valid: true, roles: undefined };
  opened = [];
});
afterEach(async () => {
  for (const one of opened) await one.close();
  await writes.close();
  await db.destroy();
});

const permit = create(DecisionSchema, { outcome: { case: "permit", value: {} } });
const denial = create(DecisionSchema, {
  outcome: { case: "denial", value: { reason: ErrorReason.POLICY_DENIED, userMessage: "On web-1: no." } },
});
const hold = create(DecisionSchema, {
  outcome: { case: "hold", value: { approvalId: "apr-1" } },
});

/** A registry of devices whose calls go as the test says. */
function portsFor(courses: Record<string, Course>, decision: Decision = permit, settled = permit): FanOutPorts {
  const directory = createDeviceIndex();
  const tools = new Map([...builtInTools()].map(([name, tool]) => [name, { ...tool, requiresApproval: false }]));
  for (const name of Object.keys(courses)) directory.put(deviceOf(name, tools));
  const receive = (request: CallRequest) => receiveCall(request, { directory, now: Date.now, newCallId: () => "" });
  return {
    directory,
    receive,
    store: storeOf("rep-1"),
    newFanOutId: () => "fan-new",
    tokenStatuses: () => status,
    membership: { self: "rep-1", isGone: (owner) => owner === "rep-0" },
    logger: createLogger({ service: "test", level: "silent" }),
    lookMs: 5,
    now: Date.now,
    policy: {
      async authorize(question) {
        asked.push(question);
        return decision;
      },
      awaitApproval: async () => settled,
      async recordOutcome(outcome) {
        outcomes.push(outcome);
        return 0n;
      },
    },
    calls: {
      async begin(request) {
        began.push(request);
        const { call, args, tool } = receive(request);
        const live = createLiveCall(call, args, tool);
        go(live, courses[directory.resolve(request.device).name] ?? "ok");
        calls.set(call.id, live);
        return live;
      },
      async find(callId) {
        const live = calls.get(callId);
        if (live === undefined) throw fault(ErrorReason.NOT_FOUND, { resource: callId });
        return live;
      },
      outputOf: () => ({ read: () => Promise.reject(fault(ErrorReason.DEVICE_OFFLINE)) }),
    },
  };
}

function deviceOf(name: string, tools: KnownDevice["tools"]): KnownDevice {
  return {
    id: `dev-${name}`,
    name,
    labels: { role: name.split("-")[0] ?? "" },
    unavailable: [],
    manifest: { mode: Mode.USER, sandbox: SandboxLevel.NONE, unavailable: [], readRoots: [], writeRoots: [] },
    manifestDigest: `m-${name}`,
    tools,
    online: true,
  } as unknown as KnownDevice;
}

function reach(live: LiveCall | undefined, state: CallState): void {
  live?.replace({ ...live.call, status: { ...live.call.status, state } });
}

function go(live: LiveCall, course: Course): void {
  if (course === "refused") throw fault(ErrorReason.NOT_AVAILABLE, { tool: "exec", program: "sh" });
  setImmediate(() => {
    if (course === "queued") return reach(live, CallState.QUEUED);
    if (course === "held") return reach(live, CallState.HELD);
    reach(live, CallState.DISPATCHED);
    if (course === "open") return;
    live.call.status.output = { exitCode: course === "exit 1" ? 1 : 0 };
    reach(live, course === "failed" ? CallState.FAILED : CallState.SUCCEEDED);
  });
}

const sealer: Sealer = { seal: (_, bytes) => bytes, open: (_, sealed) => sealed };
const storeOf = (self: string) => createFanOutStore(db, writes, sealer, self);

function open(ports: FanOutPorts): FanOuts {
  const fanOuts = createFanOuts(ports);
  opened.push(fanOuts);
  return fanOuts;
}

function start(fanOuts: FanOuts, { fanOutId = "", ...changes }: FanOutRequest = {}, principal = AGENT) {
  const spec = { selector: "role=web", tool: "exec", params: { argv: ["uptime"] }, ...changes };
  return fanOuts.start(create(StartFanOutRequestSchema, { spec, fanOutId }), principal, Ingress.RPC);
}

const watch = (one: StoredFanOut, ports: FanOutPorts) => watchFanOut(one, ports, new AbortController().signal);

async function run(ports: FanOutPorts, changes: FanOutRequest = {}) {
  return ending(await Array.fromAsync(watch(await start(open(ports), changes), ports)));
}

function ending(events: readonly WatchFanOutResponse[]) {
  const last = events.at(-1)?.event;
  if (last?.case !== "summary") throw new Error(`the last event is ${last?.case}`);
  const summary: FanOutSummary = last.value;
  const waves = events.flatMap(({ event }) => (event.case === "wave" ? [event.value.devices.join(",")] : []));
  return { events, summary, waves };
}

describe("a fan-out", () => {
  it("reports its plan, then wave after wave with what happens, and the summary last", async () => {
    const ports = portsFor({ "web-1": "ok", "web-2": "ok", "web-3": "ok", "db-1": "ok" });
    const { events, summary, waves } = await run(ports, { waveSize: 2, canary: 1, fanOutId: "f" });
    expect(events[0]?.event).toMatchObject({
      case: "plan",
      value: { fanOutId: F, waves: [{ devices: ["web-1"] }, { number: 2, devices: ["web-2", "web-3"] }] },
    });
    expect(waves).toEqual(["web-1", "web-2,web-3"]);
    expect(summary).toMatchObject({ fanOutId: F, succeeded: true, devices: 3, succeededCount: 3 });
    expect(began.map(({ callId, fanOutId, approvalId }) => [callId, fanOutId, approvalId])).toEqual([
      [`${F}-dev-web-1`, F, ""],
      [`${F}-dev-web-2`, F, ""],
      [`${F}-dev-web-3`, F, ""],
    ]);
    const states = events.flatMap(({ event }) =>
      event.case === "call" && event.value.event?.event.case === "call"
        ? [`${event.value.device} ${event.value.event.event.value.status?.state}`]
        : [],
    );
    expect(states.findLast((state) => state.startsWith("web-1"))).toBe(`web-1 ${CallState.SUCCEEDED}`);
  });

  it("asks policy once about the whole, with every device", async () => {
    await run(portsFor({ "web-1": "ok", "web-2": "ok" }), { fanOutId: "f" });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ callId: F, device: { id: "dev-web-1" }, principal: { id: AGENT.id } });
    expect(asked[0]?.devices.map(({ name, manifestDigest }) => [name, manifestDigest])).toEqual([
      ["web-1", "m-web-1"],
      ["web-2", "m-web-2"],
    ]);
  });

  it.each(["exit 1", "failed", "queued", "refused"] as const)(
    "goes no further where the canary is %s",
    async (course) => {
      const ports = portsFor({ "web-1": course, "web-2": "ok", "web-3": "ok" });
      const { summary, waves } = await run(ports, { canary: 1, stopAfterFailures: 9 });
      expect(waves).toEqual(["web-1"]);
      expect(summary).toMatchObject({
        succeeded: false,
        succeededCount: 0,
        notStarted: ["web-2", "web-3"],
        stopped: { reason: ErrorReason.FAN_OUT_STOPPED, metadata: { why: "canary" } },
      });
      expect(course === "queued" ? summary.queued : Object.keys(summary.failed)).toEqual(["web-1"]);
    },
  );

  it("goes no further once as many have failed as may", async () => {
    const ports = portsFor({ "web-1": "failed", "web-2": "ok", "web-3": "failed", "web-4": "ok", "web-5": "ok" });
    const { summary, waves } = await run(ports, { waveSize: 2, stopAfterFailures: 2 });
    expect(waves).toEqual(["web-1,web-2", "web-3,web-4"]);
    expect(summary).toMatchObject({
      succeededCount: 2,
      notStarted: ["web-5"],
      stopped: { metadata: { why: "failures" } },
    });
  });

  it("waits for a call that is held on its own", async () => {
    const running = run(portsFor({ "web-1": "ok", "web-2": "held" }), { fanOutId: "f" });
    await expect.poll(() => calls.get(`${F}-dev-web-2`)?.call.status.state).toBe(CallState.HELD);
    reach(calls.get(`${F}-dev-web-2`), CallState.EXPIRED);
    const { summary } = await running;
    expect(summary).toMatchObject({ succeededCount: 1, failed: { "web-2": { status: { state: CallState.EXPIRED } } } });
  });

  it("waits for one approval, and its calls name it", async () => {
    const { events, summary } = await run(portsFor({ "web-1": "ok", "web-2": "ok" }, hold), { fanOutId: "f" });
    expect(events[1]?.event).toMatchObject({ case: "held", value: { approvalId: "apr-1" } });
    expect(summary.succeeded).toBe(true);
    expect(began.map(({ approvalId }) => approvalId)).toEqual(["apr-1", "apr-1"]);
  });

  it.each([
    ["policy denies it", denial, permit, ErrorReason.POLICY_DENIED],
    ["a human denies it", hold, denial, ErrorReason.POLICY_DENIED],
  ])("starts nothing where %s", async (_, decision, settled, reason) => {
    const { summary } = await run(portsFor({ "web-1": "ok", "web-2": "ok" }, decision, settled));
    expect(began).toEqual([]);
    expect(summary).toMatchObject({ succeeded: false, notStarted: ["web-1", "web-2"], stopped: { reason } });
  });

  it("starts nothing, and asks no one, where a device lacks the tool or an argument is wrong", async () => {
    const ports = portsFor({ "web-1": "ok", "web-2": "ok" });
    const bare = deviceOf("web-2", new Map());
    const withBare = {
      ...ports,
      directory: { ...ports.directory, all: () => [...ports.directory.all().slice(0, 1), bare] },
    };
    const receive: FanOutPorts["receive"] = (w) =>
      w.device === bare.id
        ? receiveCall(w, {
            directory: { ...createDeviceIndex(), resolve: () => bare },
            now: Date.now,
            newCallId: () => "",
          })
        : ports.receive(w);
    const lacking = run({ ...withBare, receive });
    await expect(lacking).rejects.toThrow(/web-2: no tool "exec"/);
    const wrong = run(ports, { params: { argv: "uptime" } });
    await expect(wrong).rejects.toThrow(/web-1: params\.argv/);
    expect([began, asked]).toEqual([[], []]);
  });

  it("is resumed when the replica that owned it is gone: what ran is not run again", async () => {
    const ports = portsFor({ "web-1": "ok", "web-2": "open", "web-3": "ok" }, hold);
    const first = open({ ...ports, store: storeOf("rep-0"), membership: { self: "rep-0", isGone: () => false } });
    await start(first, { fanOutId: "f", waveSize: 2 });
    await expect.poll(() => calls.get(`${F}-dev-web-2`)?.call.status.state).toBe(CallState.DISPATCHED);
    const second = open(ports);
    await second.look();
    const stored = await second.find(F, AGENT);
    expect(stored).toMatchObject({ owner: "rep-1", startedWaves: 1, permitted: true });
    const ended = Array.fromAsync(watch(stored, ports));
    const open2 = calls.get(`${F}-dev-web-2`);
    if (open2 !== undefined) open2.call.status.output = { exitCode: 0 };
    reach(open2, CallState.SUCCEEDED);
    const { summary, waves } = ending(await ended);
    expect(summary).toMatchObject({ succeeded: true, succeededCount: 3 });
    expect(waves).toEqual(["web-1,web-2", "web-3"]);
    expect(began.map(({ device }) => device)).toEqual(["dev-web-1", "dev-web-2", "dev-web-3"]);
    expect(asked).toHaveLength(1);
  });

  it("goes on after a restart while it is held, without asking policy again", async () => {
    const ports = portsFor({ "web-1": "ok" }, hold);
    const never = { ...ports.policy, awaitApproval: aborted };
    const first = open({ ...ports, policy: never });
    await start(first, { fanOutId: "f" });
    await expect.poll(async () => (await first.find(F, AGENT)).state).toBe(FanOutState.HELD);
    await first.close();
    const second = open(ports);
    await second.look();
    expect(ending(await Array.fromAsync(watch(await second.find(F, AGENT), ports))).summary.succeeded).toBe(true);
    expect(asked).toHaveLength(1);
  });

  it("starts no further wave once the token that started it was revoked", async () => {
    const ports = portsFor({ "web-1": "open", "web-2": "ok" });
    const running = run(ports, { fanOutId: "f", waveSize: 1, stopAfterFailures: 9 });
    await expect.poll(() => calls.get(`${F}-dev-web-1`)?.call.status.state).toBe(CallState.DISPATCHED);
    status = { valid: false, why: "revoked" };
    reach(calls.get(`${F}-dev-web-1`), CallState.SUCCEEDED);
    const { summary } = await running;
    expect(summary).toMatchObject({ notStarted: ["web-2"], stopped: { reason: ErrorReason.TOKEN_REFUSED } });
  });

  it("is canceled by its principal, and by no other agent", async () => {
    const ports = portsFor({ "web-1": "open", "web-2": "ok" });
    const fanOuts = open(ports);
    const one = await start(fanOuts, { waveSize: 1 });
    await expect.poll(() => calls.get(`${one.id}-dev-web-1`)?.call.status.state).toBe(CallState.DISPATCHED);
    expect(await fanOuts.cancel(one.id, { ...AGENT, id: "agent-2" }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
    const call = calls.get(`${one.id}-dev-web-1`);
    call?.canceled.signal.addEventListener("abort", () => reach(call, CallState.CANCELED));
    const canceled = await fanOuts.cancel(one.id, AGENT);
    expect(canceled).toMatchObject({ state: FanOutState.CANCELED, summary: { notStarted: ["web-2"] } });
    expect(canceled.spec.params).toBeUndefined();
  });

  it("withdraws its approval when it is canceled while it is held, before it counts as ended", async () => {
    const ports = portsFor({ "web-1": "ok" }, hold);
    const recorded = Promise.withResolvers<bigint>();
    const recordOutcome = (outcome: CallOutcome) => {
      outcomes.push(outcome);
      return recorded.promise;
    };
    const fanOuts = open({ ...ports, policy: { ...ports.policy, awaitApproval: aborted, recordOutcome } });
    const one = await start(fanOuts, {});
    await expect.poll(async () => (await fanOuts.find(one.id, AGENT)).state).toBe(FanOutState.HELD);
    const canceled = fanOuts.cancel(one.id, AGENT);
    await expect.poll(() => outcomes).toMatchObject([{ callId: one.id, state: CallState.CANCELED }]);
    expect((await fanOuts.find(one.id, AGENT)).ended).toBe(false);
    recorded.resolve(0n);
    expect(await canceled).toMatchObject({ state: FanOutState.CANCELED, ended: true });
  });

  it("refuses an id that was used for another fan-out, and leaves it to others", async () => {
    const ports = portsFor({ "web-1": "ok" });
    await run(ports, { fanOutId: "f" });
    const other = run(ports, { fanOutId: "f", params: { argv: ["id"] } });
    expect(await other.catch(reasonOf)).toBe(ErrorReason.CALL_ID_REUSED);
    const another = await start(open(ports), { fanOutId: "f" }, { ...AGENT, id: "agent-2" });
    expect(ending(await Array.fromAsync(watch(another, ports))).summary).toMatchObject({
      succeeded: true,
      succeededCount: 1,
    });
    expect((await run(ports, { fanOutId: F })).summary.fanOutId).toBe(F);
  });

  it("keeps to its plan although other devices have the labels by then", async () => {
    await run(portsFor({ "web-1": "ok", "web-2": "ok" }), { fanOutId: "f" });
    const { summary } = await run(portsFor({ "web-1": "ok", "web-2": "ok", "web-3": "ok" }), { fanOutId: "f" });
    expect(summary.devices).toBe(2);
  });
});

/** As an approval that no human decides about. */
function aborted(_: string, signal: AbortSignal): Promise<Decision> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
