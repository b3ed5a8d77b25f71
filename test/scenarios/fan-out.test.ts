import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { runCli } from "../../cli/run-cli.ts";
import { createFakeContext } from "../../cli/testing/fake-context.ts";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  FanOutState,
  type FanOutSummary,
  type WatchFanOutResponse,
  WatchFanOutResponseSchema,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { fanOutCallId } from "../../lib/ids/fan-out-call-id.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type FanOutRequest, startAndWatch } from "../../testkit/fan-outs.ts";

let plane: ControlPlane;
let operator: Caller;
let agent: Caller;
let ids: Record<string, string>;
/** For each test: the fan-out's id, and a file or folder of its own. */
let fanOutId: string;
let mark: string;
let count = 0;
beforeAll(async () => {
  plane = await startControlPlane({
    devices: {
      this: {},
      "web-1": { labels: { role: "web" } },
      "web-2": { labels: { role: "web" } },
      "web-3": { labels: { role: "web" } },
      "db-1": { labels: { role: "db" } },
    },
  });
  operator = callerOf(plane, plane.tokens.operator);
  agent = callerOf(plane, plane.tokens.agent);
  const { devices } = await operator.registry.listDevices({});
  ids = Object.fromEntries(devices.map(({ name, id }) => [name, id]));
});
afterAll(() => plane.close());
beforeEach(() => {
  count += 1;
  fanOutId = `fan-${count}`;
  mark = join(plane.work, fanOutId);
});

type Request = FanOutRequest;

const uptime = (changes: Request = {}): Request => ({
  selector: "role=web",
  tool: "exec",
  params: { argv: ["uname"] },
  fanOutId,
  ...changes,
});
/** Works on one device only, whichever is first: all share the folder. */
const onlyOnce = (changes: Request = {}): Request => uptime({ params: { argv: ["mkdir", mark] }, ...changes });

async function run(
  caller: Caller,
  request: Request,
): Promise<{ events: WatchFanOutResponse[]; summary: FanOutSummary }> {
  return ending(await Array.fromAsync(startAndWatch(caller.fanOut, request)));
}

function ending(events: WatchFanOutResponse[]) {
  const last = events.at(-1)?.event;
  if (last?.case !== "summary") throw new Error(`the last event is ${last?.case}`);
  return { events, summary: last.value };
}

/** The devices in the order in which their calls began, with the waves between them. */
const order = (events: readonly WatchFanOutResponse[]) =>
  events.flatMap(({ event }) => {
    if (event.case === "wave") return [`wave ${event.value.number}`];
    const call =
      event.case === "call" && event.value.event?.event.case === "call" ? event.value.event.event.value : undefined;
    return call?.status?.state === CallState.SUCCEEDED && event.case === "call" ? [event.value.device] : [];
  });

const recordsOf = async (callId: string) => {
  const { entries } = await operator.audit.listRecords({ callId });
  return entries.flatMap(({ record }) => record ?? []);
};

describe("a fan-out", () => {
  test("calls every device with the labels, canary first and then in waves, and reports the results as they come", async () => {
    const { events, summary } = await run(operator, uptime({ canary: 1, waveSize: 2 }));
    expect(summary).toMatchObject({ succeeded: true, devices: 3, succeededCount: 3, message: "3 of 3 succeeded" });
    const begun = order(events);
    expect(begun.slice(0, 3)).toEqual(["wave 1", "web-1", "wave 2"]);
    expect(begun.slice(3).toSorted()).toEqual(["web-2", "web-3"]);
    for (const name of ["web-1", "web-2", "web-3"]) {
      const callId = fanOutCallId(fanOutId, ids[name] ?? "");
      const { call } = await operator.registry.getCall({ callId });
      expect(call).toMatchObject({ spec: { fanOutId, deviceId: ids[name] }, status: { state: CallState.SUCCEEDED } });
    }
    expect((await recordsOf(fanOutId)).map(({ event }) => event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.PERMIT, grantId: "" } },
    ]);
  });

  test("goes no further where the canary does not succeed", async () => {
    await mkdir(mark);
    const { events, summary } = await run(operator, onlyOnce({ canary: 1, waveSize: 2, stopAfterFailures: 9 }));
    expect(order(events).filter((step) => step.startsWith("wave"))).toEqual(["wave 1"]);
    expect(summary).toMatchObject({
      succeeded: false,
      notStarted: ["web-2", "web-3"],
      stopped: { reason: ErrorReason.FAN_OUT_STOPPED, metadata: { fan_out_id: fanOutId, why: "canary" } },
    });
    expect(Object.keys(summary.failed)).toEqual(["web-1"]);
  });

  test("is no success where some of it did not succeed", async () => {
    const { summary } = await run(operator, onlyOnce({ waveSize: 2 }));
    expect(summary).toMatchObject({ succeeded: false, succeededCount: 1, notStarted: ["web-3"] });
    expect(Object.values(summary.failed)).toMatchObject([{ status: { error: { reason: ErrorReason.TOOL_FAILED } } }]);
  });

  test("starts nothing where more devices match than may, or one lacks the tool", async () => {
    const refused = async (changes: Request) => {
      const error: unknown = await run(operator, onlyOnce(changes)).catch((thrown: unknown) => thrown);
      return faultDetail(error);
    };
    expect(await refused({ maxDevices: 2 })).toMatchObject({
      reason: ErrorReason.SELECTION_REFUSED,
      metadata: { matched: "3", max_devices: "2" },
    });
    expect(await refused({ selector: "role=cache" })).toMatchObject({ reason: ErrorReason.SELECTION_REFUSED });
    expect(await refused({ params: { argv: "mkdir" } })).toMatchObject({
      reason: ErrorReason.INVALID_INPUT,
      metadata: { device: "web-1" },
    });
    expect(await refused({ tool: "no.such" })).toMatchObject({ reason: ErrorReason.UNKNOWN_TOOL });
    expect(existsSync(mark)).toBe(false);
    expect(await recordsOf(fanOutId)).toEqual([]);
  });

  test("waits for one approval that names the devices, and every grant names it", async () => {
    const running = run(agent, uptime({ params: { argv: ["touch", mark] } }));
    const approval = await pendingApproval(operator, fanOutId);
    expect(approval.spec?.devices.map(({ name }) => name)).toEqual(["web-1", "web-2", "web-3"]);
    for (const name of ["web-1", "web-2", "web-3"])
      expect(approval.spec?.summary).toContain(`  ${name} (${ids[name]})`);
    expect(existsSync(mark)).toBe(false);
    await approveCall(operator, fanOutId);
    const { events, summary } = await running;
    expect(events.map(({ event }) => event.case).slice(0, 3)).toEqual(["plan", "held", "wave"]);
    expect(summary).toMatchObject({ succeeded: true, succeededCount: 3 });
    for (const name of ["web-1", "web-2", "web-3"]) {
      const [decided] = await recordsOf(fanOutCallId(summary.fanOutId, ids[name] ?? ""));
      expect(decided?.event).toMatchObject({
        case: "decided",
        value: { decision: DecisionKind.PERMIT, approvalId: approval.id, deviceId: ids[name] },
      });
    }
    const { approvals } = await operator.approvals.listApprovals({});
    expect(approvals.filter(({ spec }) => spec?.callId.startsWith(fanOutId))).toHaveLength(1);
  });

  test("starts nothing where a human says no", async () => {
    const running = run(agent, uptime({ params: { argv: ["touch", mark] } }));
    const { id: approvalId } = await pendingApproval(operator, fanOutId);
    await operator.approvals.deny({ approvalId, comment: "not today" });
    const { summary } = await running;
    expect(summary).toMatchObject({
      succeeded: false,
      notStarted: ["web-1", "web-2", "web-3"],
      stopped: { reason: ErrorReason.APPROVAL_DENIED },
    });
    expect(existsSync(mark)).toBe(false);
  });

  test("goes on with its next wave when its caller has left", async () => {
    const request = uptime({
      waveSize: 2,
      params: { argv: ["sh", "-c", `echo . >> ${mark}; until [ -e ${mark}.go ]; do sleep 0.02; done`] },
    });
    const left = new AbortController();
    const reading = Array.fromAsync(startAndWatch(operator.fanOut, request, left.signal));
    await eventually(() => expect(existsSync(mark)).toBe(true));
    left.abort();
    await expect(reading).rejects.toThrow();
    const third = { callId: fanOutCallId(fanOutId, ids["web-3"] ?? "") };
    await expect(operator.registry.getCall(third)).rejects.toThrow(/no call/);
    await writeFile(`${mark}.go`, "");
    await eventually(async () =>
      expect((await operator.fanOut.getFanOut({ fanOutId })).fanOut).toMatchObject({
        spec: { tool: "exec", purpose: "" },
        status: { state: FanOutState.SUCCEEDED, startedWaves: 2, summary: { succeededCount: 3 } },
      }),
    );
    expect((await run(operator, request)).summary).toMatchObject({ succeeded: true, succeededCount: 3 });
    expect(await readFile(mark, "utf8")).toBe(".\n.\n.\n");
  });

  test("goes on after its registry was restarted, and is not run twice", async () => {
    const argv = ["sh", "-c", `echo . >> ${mark}; until [ -e ${mark}.go ]; do sleep 0.02; done`];
    await operator.fanOut.startFanOut({
      spec: { selector: "role=web", tool: "exec", params: { argv }, waveSize: 1, stopAfterFailures: 9 },
      fanOutId,
    });
    await eventually(() => expect(existsSync(mark)).toBe(true));
    const watch = createFakeContext({ env: { ...shellOf(plane, plane.tokens.operator, plane.work), NO_COLOR: "1" } });
    const watched = runCli(["fanout", "watch", fanOutId], watch);
    await watch.shown("stderr", "wave 1: web-1");
    await plane.processes.registry.kill();
    await watch.shown("stderr", "no connection to the registry");
    await plane.processes.registry.start();
    await watch.shown("stderr", "connected to the registry again");
    await writeFile(`${mark}.go`, "");
    await eventually(async () =>
      expect((await operator.fanOut.getFanOut({ fanOutId })).fanOut?.status).toMatchObject({
        state: FanOutState.SUCCEEDED,
        startedWaves: 3,
      }),
    );
    expect(await watched).toBe(0);
    expect(watch.stderrText().match(/wave \d: .*/g)).toEqual(["wave 1: web-1", "wave 2: web-2", "wave 3: web-3"]);
    expect(await readFile(mark, "utf8")).toBe(".\n.\n.\n");
  });

  test("is canceled as a whole: what runs ends, and nothing else starts", async () => {
    const request = uptime({ waveSize: 2, params: { argv: ["sh", "-c", `touch ${mark}; sleep 60`] } });
    const running = run(operator, request);
    await eventually(() => expect(existsSync(mark)).toBe(true));
    const { fanOut } = await operator.fanOut.cancelFanOut({ fanOutId });
    expect(fanOut?.status?.state).toBe(FanOutState.CANCELED);
    const { summary } = await running;
    expect(summary).toMatchObject({ notStarted: ["web-3"], stopped: { reason: ErrorReason.CANCELED } });
    expect(Object.values(summary.failed).map(({ status }) => status?.state)).toEqual(Array(2).fill(CallState.CANCELED));
  });

  test("that is held is canceled before anything was called", async () => {
    const { fanOut } = await agent.fanOut.startFanOut({
      spec: { selector: "role=web", tool: "exec", params: { argv: ["touch", mark] } },
      fanOutId,
    });
    const id = fanOut?.id ?? "";
    const { id: approvalId } = await pendingApproval(operator, fanOutId);
    expect((await agent.fanOut.cancelFanOut({ fanOutId: id })).fanOut?.status).toMatchObject({
      state: FanOutState.CANCELED,
      startedWaves: 0,
    });
    const { approval } = await operator.approvals.getApproval({ approvalId });
    expect(approval?.status).toMatchObject({ state: ApprovalState.CANCELED, comment: "the call ended: CANCELED" });
  });

  test("is listed, the newest first, and seen by its own agent only", async () => {
    const mine = await agent.fanOut.startFanOut({ spec: { devices: ["this"], tool: "device.ping" }, fanOutId });
    const [newest] = (await operator.fanOut.listFanOuts({ pageSize: 1 })).fanOuts;
    expect(newest?.id).toBe(mine.fanOut?.id);
    const first = await agent.fanOut.listFanOuts({ pageSize: 1 });
    expect(first.fanOuts.map(({ id }) => id)).toEqual([mine.fanOut?.id]);
    const next = await agent.fanOut.listFanOuts({ pageSize: 250, pageToken: first.nextPageToken });
    expect(next.fanOuts.every(({ principalId }) => principalId === newest?.principalId)).toBe(true);
    const another = (await operator.fanOut.listFanOuts({})).fanOuts.find(
      ({ principalId }) => principalId !== newest?.principalId,
    );
    await expect(agent.fanOut.getFanOut({ fanOutId: another?.id ?? "none" })).rejects.toThrow(/no fan-out/);
  });

  test("cancels what a caller cancels, call by call", async () => {
    const running = run(operator, uptime({ params: { argv: ["sleep", "60"] } }));
    const callIds = ["web-1", "web-2", "web-3"].map((name) => fanOutCallId(fanOutId, ids[name] ?? ""));
    for (const callId of callIds) {
      await eventually(async () =>
        expect((await operator.registry.getCall({ callId })).call?.status?.state).toBe(CallState.DISPATCHED),
      );
      await operator.registry.cancelCall({ callId });
    }
    const { summary } = await running;
    expect(Object.values(summary.failed).map(({ status }) => status?.state)).toEqual(Array(3).fill(CallState.CANCELED));
  });
});

describe("reeve call --on", () => {
  const reeve = (...args: string[]) => runReeve(args, shellOf(plane, plane.tokens.operator, plane.folder));

  test("shows how each device stands and what came back, and ends with 0 where all succeeded", async () => {
    const { code, stdout, stderr } = await reeve("call", "--on", "role=web", "--wave", "2", "exec", "--argv", "uname");
    expect({ code, stdout: stdout.split("\n").toSorted() }).toEqual({
      code: 0,
      stdout: ["", "web-1 │ Linux", "web-2 │ Linux", "web-3 │ Linux"],
    });
    expect(stderr).toMatch(/wave 1: web-1, web-2\n.*web-1 {2}ok\n.*wave 2: web-3\n.*3 of 3 succeeded/s);
  });

  test("ends as its first call that did not succeed, and with --json prints a line for each event", async () => {
    await mkdir(mark);
    const args = ["--json", "--on", "role=web", "--canary", "1", "exec", "--argv", "mkdir", "--argv", mark];
    const { code, stdout } = await reeve("call", ...args);
    expect(code).toBe(9);
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => fromJson(WatchFanOutResponseSchema, JSON.parse(line) as JsonValue));
    expect(events[0]?.event.case).toBe("plan");
    expect(ending(events).summary).toMatchObject({ succeeded: false, notStarted: ["web-2", "web-3"] });
  });

  test("starts nothing and ends with 2 where too many devices match", async () => {
    const { code, stderr } = await reeve("call", "--on", "role", "--max-devices", "3", "exec", "--argv", "uname");
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("4 devices would be called") });
  });
});

describe("with a device that is offline", () => {
  beforeAll(() => plane.device("web-2").process.stop());
  afterAll(() => plane.device("web-2").process.start());

  test("a fan-out is no success, and says which device it is", async () => {
    const { summary } = await run(operator, uptime());
    expect(summary).toMatchObject({
      succeeded: false,
      succeededCount: 2,
      failed: {
        "web-2": { status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } },
      },
    });
  });

  test("a fan-out keeps the call for it where that is wanted", async () => {
    const { summary } = await run(operator, uptime({ queueTimeout: durationFromMs(600_000) }));
    expect(summary).toMatchObject({ succeeded: false, succeededCount: 2, queued: ["web-2"], failed: {} });
    const callId = fanOutCallId(fanOutId, ids["web-2"] ?? "");
    await plane.device("web-2").process.start();
    await eventually(async () =>
      expect((await operator.registry.getCall({ callId })).call?.status?.state).toBe(CallState.SUCCEEDED),
    );
    expect((await run(operator, uptime({ queueTimeout: durationFromMs(600_000) }))).summary).toMatchObject({
      succeeded: true,
    });
    await plane.device("web-2").process.stop();
  });
});
