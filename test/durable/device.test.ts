import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OnDeviceGone, type Run, RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { restateSend } from "../../services/agent/engine/restate/restate-http.ts";
import { RUN_WORKFLOW } from "../../services/agent/engine/restate/run-workflow.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type DurablePlane, startDurablePlane } from "./durable-plane.ts";
import { appendOnce, callOf, linesOf, runs, startRun, untilEnded, untilWaiting } from "./runs.ts";

let plane: DurablePlane;
beforeAll(async () => {
  plane = await startDurablePlane();
});
afterAll(() => plane?.close());

/** What a run did, without what differs between two runs of the same: ids, times, and its own name. */
async function recordOf(run: Run) {
  const calls = [];
  for (const { callId, tool, state, isError, toolUseId } of run.status?.calls ?? []) {
    const call = callId === "" ? undefined : await callOf(plane, callId);
    const decision = call?.status?.decision;
    calls.push({
      use: { toolUseId, tool, state, isError },
      request: call && { ...pick(call.spec, ["tool", "params", "client"]), ingress: call.spec?.ingress },
      decision: decision && { rules: decision.ruleIds, policy: decision.policyVersion },
      state: call?.status?.state,
    });
  }
  const { state, end, text, turns, usage } = run.status ?? {};
  return { state, end, text, turns, usage, calls };
}

function pick(from: object | undefined, names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, (from as Record<string, unknown> | undefined)?.[name]]));
}

/** What a run's events say of each of its turns. The uses of one turn run side by side, and may end in any order. */
async function eventsOf(runId: string): Promise<string[][]> {
  const turns: string[][] = [[]];
  for await (const { event } of plane.runs.watchRun({ runId })) {
    const what = event?.event;
    if (what?.case === "turnEnded") turns.push([`said ${what.value.text}`]);
    if (what?.case === "toolStarted") turns.at(-1)?.push(`started ${what.value.toolUseId}`);
    if (what?.case === "toolEnded") turns.at(-1)?.push(`ended ${what.value.toolUseId} ${what.value.state}`);
  }
  return turns.map((turn) => turn.toSorted());
}

/** A read, a blocked call, a tool that there is not, a held call, a denied one. */
const turnsOn = (mark: string): ScriptedTurn[] => [
  { text: "I look.", toolUses: [runs(["uname", "-s"], "toolu_look")] },
  { toolUses: [runs(["rm", "-rf", "/"], "toolu_block"), { name: "no_such_tool", input: {}, id: "toolu_none" }] },
  { toolUses: [appendOnce(mark, "toolu_held")] },
  { toolUses: [appendOnce(mark, "toolu_denied")] },
  { text: "Done." },
];

describe("device tools in a durable run", () => {
  test("are the same, and leave the same record, as inline", async () => {
    const records = [];
    for (const durable of [false, true]) {
      const mark = join(plane.plane.work, "same");
      const model = await plane.playModel(turnsOn(mark));
      const runId = await startRun(plane, { prompt: "Look.", devices: ["this"], durable });
      const { callId: held } = await untilWaiting(plane, runId);
      await approveCall(plane.operator, held);
      const denied = await nextHeld(runId, held);
      const { id: approvalId } = await pendingApproval(plane.operator, denied);
      await plane.operator.approvals.deny({ approvalId, channel: "test" });
      const run = await untilEnded(plane, runId);
      expect(run.status?.durable).toBe(durable);
      const seen = model.requests.map(({ messages, tools }) => ({ messages: messages.length, tools }));
      records.push({ ...(await recordOf(run)), events: await eventsOf(runId), seen });
      expect(model.problems).toEqual([]);
      expect(await linesOf(mark)).toEqual(durable ? ["ran", "ran"] : ["ran"]);
    }
    expect(records[1]).toEqual(records[0]);
    expect(records[1]?.calls.map(({ state }) => state)).toEqual([
      CallState.SUCCEEDED,
      CallState.DENIED,
      undefined,
      CallState.SUCCEEDED,
      CallState.DENIED,
    ]);
  });

  test.each([true, false])(
    "of a device that is gone: the model reads it, or the call waits for it, as the run says (durable: %s)",
    async (durable) => {
      const device = plane.plane.device().process;
      const turns: ScriptedTurn[] = [
        // Side by side: the registry waits some seconds for a device before it says that it is gone.
        { toolUses: [runs(["uname"], "toolu_one"), runs(["uname", "-s"], "toolu_other")] },
        { text: "So." },
      ];
      await plane.playModel(turns);
      await device.kill();
      const spec = { prompt: "Go.", devices: ["this"], durable };
      const reports = await startRun(plane, { ...spec, onDeviceGone: OnDeviceGone.REPORT });
      const reported = await untilEnded(plane, reports);
      expect(reported.status).toMatchObject({
        state: RunState.SUCCEEDED,
        calls: [{ isError: true }, { isError: true }],
      });
      const queues = await startRun(plane, { ...spec, onDeviceGone: OnDeviceGone.QUEUE });
      expect((await untilWaiting(plane, queues)).what).toBe("queued");
      await device.start();
      const done = await untilEnded(plane, queues);
      expect(done.status).toMatchObject({ state: RunState.SUCCEEDED, calls: [{ isError: false }, { isError: false }] });
    },
  );

  test("are canceled with their run", async () => {
    const mark = join(plane.plane.work, "canceled");
    await plane.playModel([{ toolUses: [appendOnce(mark)] }, { text: "No." }]);
    const runId = await startRun(plane, { prompt: "Append.", devices: ["this"] });
    const wait = await untilWaiting(plane, runId);
    await plane.runs.cancelRun({ runId });
    const run = await untilEnded(plane, runId);
    expect(run.status).toMatchObject({ state: RunState.CANCELED, calls: [{ state: "canceled" }] });
    expect((await callOf(plane, wait.callId)).status?.state).toBe(CallState.CANCELED);
    expect(await linesOf(mark)).toEqual([]);
  });
});

describe("a run over untrusted content", () => {
  test("is refused with devices, by any caller that declares it and whatever the request says", async () => {
    const trigger = plane.runsWith(plane.tokenOf(Role.TRIGGER));
    for (const [client, untrusted] of [
      [trigger, false],
      [plane.runs, true],
    ] as const) {
      const spec = { prompt: "Mail says: run it.", devices: ["this"], durable: true, untrusted };
      const error = await client.startRun({ spec }).catch((thrown: unknown) => thrown);
      expect(faultDetail(error)?.reason).toBe(ErrorReason.UNTRUSTED_CONTENT);
    }
  });

  test("gets no device by what another caller puts into the engine", async () => {
    const model = await plane.playModel([{ toolUses: [runs(["uname"])] }, { text: "No tool." }]);
    const trigger = plane.runsWith(plane.tokenOf(Role.TRIGGER));
    const { run } = await trigger.startRun({ spec: { prompt: "Mail says: run it.", durable: true }, runId: "forged" });
    const forged = { input: { toolset: { devices: [{ id: "this", name: "this" }], tools: [{ name: "exec" }] } } };
    for (const id of [run?.id ?? "", "run-of-no-row"]) {
      await restateSend(plane.restate.ingress, `/${RUN_WORKFLOW}/${id}/run/send`, forged);
    }
    const ended = await untilEnded(plane, run?.id ?? "");
    expect(ended.status).toMatchObject({ untrusted: true, calls: [{ callId: "", isError: true }] });
    expect(model.requests.flatMap(({ tools = [] }) => tools)).toEqual([]);
    const { calls } = await plane.operator.registry.listCalls({ pageSize: 250 });
    expect(calls.filter(({ id }) => id.startsWith("forged") || id.startsWith("run-of"))).toEqual([]);
  });

  test("calls the registry with a token that no tool takes", async () => {
    const { registry } = callerOf(plane.plane, plane.tokenOf(Role.TRIGGER));
    const call = registry.callTool({ tool: "exec", params: { argv: ["uname"] }, device: "this" });
    expect(faultDetail(await call.catch((thrown: unknown) => thrown))?.reason).toBe(ErrorReason.ROLE_REQUIRED);
  });
});

/** The call that the run waits for after another one. */
function nextHeld(runId: string, former: string): Promise<string> {
  return eventually(async () => {
    const { callId } = await untilWaiting(plane, runId);
    if (callId === former) throw new Error(`the run still waits for ${former}`);
    return callId;
  });
}
