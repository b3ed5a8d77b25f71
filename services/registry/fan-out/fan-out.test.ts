import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  FanOutRequestSchema,
  type FanOutResponse,
  type FanOutSummary,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { createLiveCall, type LiveCall } from "../calls/live-call.ts";
import { type CallWish, receiveCall } from "../calls/receive.ts";
import { inScope } from "../calls/scoped-id.ts";
import { createDirectory } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/linked-device.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { type FanOutPorts, fanOut } from "./fan-out.ts";
import { createFanOutStore } from "./store.ts";

const AGENT: Principal = { id: "agent-1", kind: "agent", roles: [Role.AGENT], name: "agent" };
/** The id of the fan-out that AGENT calls "f". */
const F = inScope("f", AGENT.id, 40);

/** How the call on a device goes. */
type Course = "ok" | "exit 1" | "failed" | "queued" | "held" | "refused" | "open";

let db: Database<RegistryTables>;
let writes: GroupCommit<RegistryTables>;
let began: CallWish[];
let asked: DecisionRequest[];
let closing: AbortController;
/** Every call by id, as the store of calls would have it. */
let calls: Map<string, LiveCall>;

beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  writes = createGroupCommit(db);
  began = [];
  asked = [];
  calls = new Map();
  closing = new AbortController();
});
afterEach(async () => {
  await writes.close();
  await db.destroy();
});

const permit = create(DecisionSchema, { outcome: { case: "permit", value: {} } });
const denial = create(DecisionSchema, {
  outcome: { case: "denial", value: { reason: ErrorReason.POLICY_DENIED, userMessage: "On web-1: no." } },
});
const hold = create(DecisionSchema, {
  outcome: { case: "hold", value: { approvalId: "apr-1", message: "It waits." } },
});

/** A registry of devices whose calls go as they are told. */
function portsFor(courses: Record<string, Course>, decision: Decision = permit, settled = permit): FanOutPorts {
  const directory = createDirectory(undefined);
  const tools = new Map([...builtInTools()].map(([name, tool]) => [name, { ...tool, requiresApproval: false }]));
  for (const name of Object.keys(courses)) directory.put(deviceOf(name, tools));
  const receive = (wish: CallWish) => receiveCall(wish, { directory, now: Date.now, newCallId: () => "" });
  return {
    directory,
    receive,
    store: createFanOutStore(db, writes),
    newFanOutId: () => "fan-new",
    closing: closing.signal,
    policy: {
      async authorize(question) {
        asked.push(question);
        return decision;
      },
      awaitApproval: async () => settled,
    },
    calls: {
      async begin(wish) {
        began.push(wish);
        const { call, args, tool } = receive(wish);
        const live = createLiveCall(call, args, tool);
        calls.set(call.id, live);
        go(live, courses[directory.resolve(wish.device).name] ?? "ok");
        return live;
      },
      async find(callId) {
        const live = calls.get(callId);
        if (live === undefined) throw fault(ErrorReason.NOT_FOUND, { resource: callId });
        return live;
      },
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

function go(live: LiveCall, course: Course): void {
  if (course === "refused") throw fault(ErrorReason.NOT_AVAILABLE, { tool: "exec", program: "sh" });
  setImmediate(() => {
    if (course === "queued") return live.enter(CallState.QUEUED);
    if (course === "held") return live.enter(CallState.HELD);
    live.enter(CallState.DISPATCHED);
    if (course === "open") return;
    live.call.output = { exitCode: course === "exit 1" ? 1 : 0 };
    live.enter(course === "failed" ? CallState.FAILED : CallState.SUCCEEDED);
  });
}

const wish = (changes: MessageInitShape<typeof FanOutRequestSchema> = {}) =>
  create(FanOutRequestSchema, { selector: "role=web", tool: "exec", params: { argv: ["uptime"] }, ...changes });

async function run(ports: FanOutPorts, changes: MessageInitShape<typeof FanOutRequestSchema> = {}) {
  return tell(await Array.fromAsync(fanOut(wish(changes), AGENT, ports, new AbortController().signal)));
}

function tell(events: readonly FanOutResponse[]) {
  const last = events.at(-1)?.event;
  if (last?.case !== "summary") throw new Error(`the last event is ${last?.case}`);
  const summary: FanOutSummary = last.value;
  const waves = events.flatMap(({ event }) => (event.case === "wave" ? [event.value.devices.join(",")] : []));
  return { events, summary, waves };
}

describe("a fan-out", () => {
  it("tells its plan, then wave after wave with what happens, and the summary last", async () => {
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
    const told = events.flatMap(({ event }) =>
      event.case === "call" && event.value.event?.event.case === "call"
        ? [`${event.value.device} ${event.value.event.event.value.state}`]
        : [],
    );
    expect(told.slice(0, 3)).toEqual([
      `web-1 ${CallState.RECEIVED}`,
      `web-1 ${CallState.DISPATCHED}`,
      `web-1 ${CallState.SUCCEEDED}`,
    ]);
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

  it("is no success where a call of the last wave is held for longer than it is waited for", async () => {
    const { summary } = await run(portsFor({ "web-1": "ok", "web-2": "held" }), { waitMs: 1 });
    expect(summary).toMatchObject({
      succeeded: false,
      succeededCount: 1,
      failed: { "web-2": { state: CallState.HELD } },
    });
  });

  it("waits for one approval, and its calls name it", async () => {
    const { events, summary } = await run(portsFor({ "web-1": "ok", "web-2": "ok" }, hold), { fanOutId: "f" });
    expect(events[1]?.event).toMatchObject({ case: "held", value: { approvalId: "apr-1", message: "It waits." } });
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

  it("starts nothing, and asks nobody, where a device lacks the tool or an argument is wrong", async () => {
    const ports = portsFor({ "web-1": "ok", "web-2": "ok" });
    const bare = deviceOf("web-2", new Map());
    const withBare = {
      ...ports,
      directory: { ...ports.directory, all: () => [...ports.directory.all().slice(0, 1), bare] },
    };
    const receive: FanOutPorts["receive"] = (w) =>
      w.device === bare.id
        ? receiveCall(w, {
            directory: { ...createDirectory(undefined), resolve: () => bare },
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

  it("goes on where it stood when the same id is tried again", async () => {
    const courses: Record<string, Course> = { "web-1": "ok", "web-2": "open", "web-3": "ok" };
    const ports = portsFor(courses, hold);
    const left = new AbortController();
    const first: FanOutResponse[] = [];
    const reading = (async () => {
      for await (const response of fanOut(wish({ fanOutId: "f", waveSize: 2 }), AGENT, ports, left.signal)) {
        first.push(response);
        const { event } = response;
        if (event.case === "call" && event.value.device === "web-1") {
          const told = event.value.event?.event;
          if (told?.case === "call" && told.value.state === CallState.SUCCEEDED) left.abort();
        }
      }
    })();
    await expect(reading).rejects.toThrow();
    expect(began.map(({ device }) => device)).toEqual(["dev-web-1", "dev-web-2"]);

    const again = run(ports, { fanOutId: "f", waveSize: 2 });
    await expect.poll(() => calls.get(`${F}-dev-web-2`)?.call.state).toBe(CallState.DISPATCHED);
    const open = calls.get(`${F}-dev-web-2`);
    if (open !== undefined) open.call.output = { exitCode: 0 };
    open?.enter(CallState.SUCCEEDED);
    const { summary, waves } = await again;
    expect(summary).toMatchObject({ succeeded: true, succeededCount: 3 });
    expect(waves).toEqual(["web-1,web-2", "web-3"]);
    expect(began.map(({ device }) => device)).toEqual(["dev-web-1", "dev-web-2", "dev-web-3"]);
    expect(asked).toHaveLength(1);
  });

  it("refuses an id that was used for another fan-out, and leaves it to others", async () => {
    const ports = portsFor({ "web-1": "ok" });
    await run(ports, { fanOutId: "f" });
    const other = run(ports, { fanOutId: "f", params: { argv: ["id"] } });
    expect(await other.catch(reasonOf)).toBe(ErrorReason.CALL_ID_REUSED);
    const events = fanOut(wish({ fanOutId: "f" }), { ...AGENT, id: "agent-2" }, ports, new AbortController().signal);
    expect(tell(await Array.fromAsync(events)).summary).toMatchObject({ succeeded: true, succeededCount: 1 });
    expect((await run(ports, { fanOutId: F })).summary.fanOutId).toBe(F);
  });

  it("keeps to its plan although other devices have the labels by then", async () => {
    await run(portsFor({ "web-1": "ok", "web-2": "ok" }), { fanOutId: "f" });
    const { summary } = await run(portsFor({ "web-1": "ok", "web-2": "ok", "web-3": "ok" }), { fanOutId: "f" });
    expect(summary.devices).toBe(2);
  });

  it("starts no further wave when the registry closes, and says to try again", async () => {
    const ports = portsFor({ "web-1": "ok", "web-2": "ok" });
    const told: string[] = [];
    const reading = (async () => {
      for await (const { event } of fanOut(wish({ waveSize: 1 }), AGENT, ports, new AbortController().signal)) {
        told.push(event.case ?? "");
        if (event.case === "call") closing.abort();
      }
    })();
    expect(await reading.catch(reasonOf)).toBe(ErrorReason.NOT_READY);
    expect(began.map(({ device }) => device)).toEqual(["dev-web-1"]);
  });
});
