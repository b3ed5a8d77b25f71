import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type DurablePlane, startDurablePlane } from "./durable-plane.ts";
import { kill, PARTS, revive } from "./kill-parts.ts";
import { appendOnce, linesOf, startRun, untilEnded, untilWaiting } from "./runs.ts";

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
    for (const part of parts) await revive(plane, part);
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
