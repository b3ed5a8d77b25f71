import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../cli/run-cli.ts";
import { createFakeContext } from "../../cli/testing/fake-context.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type DurablePlane, startDurablePlane } from "./durable-plane.ts";
import { appendOnce, linesOf, startRun, untilWaiting } from "./runs.ts";

let plane: DurablePlane;
beforeAll(async () => {
  plane = await startDurablePlane();
});
afterAll(() => plane?.close());

test("a durable run is watched across the death of its worker, to its end on the one that is started again", async () => {
  const mark = join(plane.plane.work, "watched");
  await plane.playModel([{ text: "I append.", toolUses: [appendOnce(mark)] }, { text: "Appended." }]);
  const runId = await startRun(plane, { prompt: "Append.", devices: ["this"] });
  const { callId } = await untilWaiting(plane, runId);
  const terminal = createFakeContext({
    env: {
      REEVE_DATA_DIR: plane.plane.folder,
      REEVE_TOKEN: plane.plane.tokens.operator,
      REEVE_REGISTRY_URL: plane.plane.registry.url,
      REEVE_POLICY_URL: plane.plane.policy.url,
      REEVE_AGENT_URL: plane.worker.url,
    },
  });
  const watching = runCli(["run", "watch", runId, "--json"], terminal);
  await terminal.shown("stdout", "RUN_STATE_WAITING");
  await plane.worker.kill();
  await terminal.shown("stderr", "no connection to the agent service");
  await approveCall(plane.operator, callId);
  await plane.worker.start();
  expect(await watching, terminal.stderrText()).toBe(0);
  const lines = terminal.stdoutText().trim().split("\n");
  const events = lines.map((line) => JSON.parse(line));
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  const states = events.flatMap(({ state }) => (state === undefined ? [] : [state.state]));
  expect(states.map((state: string) => state.replace("RUN_STATE_", ""))).toEqual([
    "RUNNING",
    "WAITING",
    "RUNNING",
    "SUCCEEDED",
  ]);
  expect(events.at(-1).state.status).toMatchObject({ text: "Appended.", calls: [{ state: "succeeded" }] });
  expect(await linesOf(mark)).toEqual(["ran"]);
});
