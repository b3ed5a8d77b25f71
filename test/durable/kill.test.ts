import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type DurablePlane, startDurablePlane } from "./durable-plane.ts";
import { kill, PARTS, revive } from "./kill-parts.ts";
import { appendOnce, linesOf, runs, startRun, untilEnded, untilWaiting } from "./runs.ts";

/** REEVE_KILL_SEED repeats a loop, REEVE_KILL_ROUNDS makes it longer. */
const SEED = Number(process.env.REEVE_KILL_SEED ?? 20_261);
const ROUNDS = Number(process.env.REEVE_KILL_ROUNDS ?? 4);
const RUNS = 3;

let plane: DurablePlane;
beforeAll(async () => {
  plane = await startDurablePlane();
});
afterAll(() => plane?.close());

describe("a durable run with a held call goes on after an approval and acts once", () => {
  const killed = [...PARTS.map((part) => ({ parts: [part] })), { parts: [...PARTS] }];
  test.each(killed)("killed meanwhile: $parts", async ({ parts }) => {
    const mark = join(plane.plane.work, `held-${parts.join("-")}`);
    const model = await plane.playModel([{ toolUses: [appendOnce(mark)] }, { text: "Appended." }]);
    const runId = await startRun(plane, { prompt: "Append.", devices: ["this"] });
    const wait = await untilWaiting(plane, runId);
    for (const part of parts) await kill(plane, part);
    await sleep(200);
    await Promise.all(parts.map((part) => revive(plane, part)));
    await approveCall(plane.operator, wait.callId);
    const ended = await untilEnded(plane, runId);
    expect(ended.status).toMatchObject({
      state: RunState.SUCCEEDED,
      text: "Appended.",
      calls: [{ state: "succeeded" }],
    });
    expect(await linesOf(mark)).toEqual(["ran"]);
    expect(model.problems).toEqual([]);
  });
});

test("an inline run with a held call goes on after the registry's death, and acts once", async () => {
  const mark = join(plane.plane.work, "held-inline");
  const model = await plane.playModel([{ toolUses: [appendOnce(mark)] }, { text: "Appended." }]);
  const runId = await startRun(plane, { prompt: "Append.", devices: ["this"], durable: false });
  const wait = await untilWaiting(plane, runId);
  await kill(plane, "registry");
  await sleep(200);
  await revive(plane, "registry");
  await approveCall(plane.operator, wait.callId);
  const ended = await untilEnded(plane, runId);
  expect(ended.status).toMatchObject({ state: RunState.SUCCEEDED, text: "Appended.", calls: [{ state: "succeeded" }] });
  expect(await linesOf(mark)).toEqual(["ran"]);
  expect(model.problems).toEqual([]);
});

test(
  `runs act once and come to their ends, whatever is killed when (seed ${SEED}, ${ROUNDS} rounds)`,
  async () => {
    const random = randomOf(SEED);
    const mark = join(plane.plane.work, "loop");
    const turns: ScriptedTurn[] = [
      { toolUses: [runs(["uname", "-s"])] },
      { toolUses: [appendOnce(mark)] },
      { toolUses: [runs(["uname", "-m"])] },
      { text: "Done." },
    ];
    await plane.playModel(turns);
    const starting = Array.from({ length: RUNS }, () => startRun(plane, { prompt: "Append.", devices: ["this"] }));
    const ids = await Promise.all(starting);
    const approving = approveAll();
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(random() * 700);
      const parts = PARTS.filter(() => random() < 0.4);
      for (const part of parts) await kill(plane, part);
      await sleep(random() * 300);
      await Promise.all(parts.map((part) => revive(plane, part)));
    }
    // Once more with nothing killed: it has to be carried out, whatever became of the others.
    ids.push(await startRun(plane, { prompt: "Append.", devices: ["this"] }));
    let appended = 0;
    for (const id of ids) {
      const run = await untilEnded(plane, id);
      appended +=
        run.status?.calls.filter(({ tool, state }) => tool === "shell.eval" && state === "succeeded").length ?? 0;
      expect(run.status).toMatchObject({ state: RunState.SUCCEEDED, text: "Done.", turns: 4 });
    }
    await approving.stop();
    // A call that found no policy has failed, and says so: nothing runs without a decision. Any other has run once.
    expect(appended).toBeGreaterThan(0);
    expect(await linesOf(mark)).toEqual(Array(appended).fill("ran"));
  },
  120_000 + ROUNDS * 15_000,
);

/** A person who approves whatever is held, as soon as policy answers. */
function approveAll() {
  let stopped = false;
  const loop = async () => {
    while (!stopped) {
      await sleep(300);
      const { approvals } = await plane.operator.approvals
        .listApprovals({ state: ApprovalState.PENDING })
        .catch(() => ({ approvals: [] }));
      for (const { id: approvalId, spec } of approvals) {
        const decision = { approvalId, summaryDigest: spec?.summaryDigest ?? "", channel: "test" };
        await plane.operator.approvals.approve(decision).catch(() => undefined);
      }
    }
  };
  const running = loop();
  return {
    async stop() {
      stopped = true;
      await eventually(() => running);
    },
  };
}

/** A small generator (mulberry32), so that a loop can be repeated. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
