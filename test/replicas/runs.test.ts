import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { watchRun } from "../../client/runs.ts";
import { type RunEvent, RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { startServiceProcess } from "../../testkit/service-process.ts";

type Runs = ReturnType<typeof clientAt>;

const parts = new AsyncDisposableStack();
let plane: ControlPlane;
let model: ScriptedModel;
let [modelPort, here, there]: [number, Runs?, Runs?] = [0];

function clientAt(url: string) {
  const transport = parts.adopt(createServiceTransport({ baseUrl: url, token: plane.tokens.operator }), (one) =>
    one.close(),
  );
  return createClient(RunService, transport);
}

/** Two replicas of the agent service on one PostgreSQL database. */
beforeAll(async () => {
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  plane = parts.adopt(await startControlPlane(), (one) => one.close());
  const databaseUrl = await postgres.newDatabase();
  const sealingKeyFile = join(plane.folder, "runs.key");
  await writeFile(sealingKeyFile, `${Buffer.alloc(32, 9).toString("base64")}\n`, { mode: 0o600 });
  [modelPort = 0] = await freePorts(1);
  const start = async (name: string): Promise<Runs> => {
    const [port = 0] = await freePorts(1);
    const env = {
      REEVE_AGENT_PORT: String(port),
      REEVE_AGENT_STATE_DIR: join(plane.folder, name),
      REEVE_AGENT_DATABASE_URL: databaseUrl,
      REEVE_SEALING_KEY_FILE: sealingKeyFile,
      REEVE_TOKENS_FILE: join(plane.folder, "tokens.json"),
      REEVE_REGISTRY_URL: plane.registry.url,
      REEVE_AGENT_TOKEN: plane.tokens.agent,
      ANTHROPIC_API_KEY: "scripted",
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${modelPort}`,
    };
    return clientAt(parts.adopt(await startServiceProcess("agent", port, env), (one) => one.stop()).url);
  };
  here = await start("agent-1");
  there = await start("agent-2");
});
afterAll(() => parts.disposeAsync());

/** Starts a run on one replica, and watches it on the other. */
async function startAndWatch(turns: readonly ScriptedTurn[], devices: string[]) {
  if (here === undefined || there === undefined) throw new Error("no replicas");
  model = await startScriptedModel({ turns, port: modelPort });
  const { run } = await here.startRun({ spec: { prompt: "Go.", mayAsk: true, devices } });
  const runId = run?.id ?? "";
  const events: RunEvent[] = [];
  const other = there;
  const watched = (async () => {
    for await (const event of watchRun(other, runId)) events.push(event);
  })();
  const waits = () =>
    eventually(async () => {
      const { run: now } = await other.getRun({ runId });
      expect(now?.status?.state).toBe(RunState.WAITING);
      return now?.status?.waits[0];
    });
  const ended = async () => {
    await watched;
    await model.close();
    expect(model.problems).toEqual([]);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    return (await other.getRun({ runId })).run?.status;
  };
  return { runId, other, waits, ended };
}

test("a run is watched and answered through another replica than the one that it runs in", async () => {
  const question = { name: "ask_user", input: { question: "Which?" } };
  const { runId, other, waits, ended } = await startAndWatch([{ toolUses: [question] }, { text: "Thanks." }], []);
  const wait = await waits();
  expect(wait).toMatchObject({ what: "question", text: "Which?" });
  await other.answerRun({ runId, questionId: wait?.questionId ?? "", text: "This one." });
  expect(await ended()).toMatchObject({ state: RunState.SUCCEEDED, text: "Thanks." });
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("The user answered: This one.");
});

test("a run with a held call is watched and canceled through another replica", async () => {
  const held = { name: "exec", input: { argv: ["touch", "x"] } };
  const { runId, other, waits, ended } = await startAndWatch([{ toolUses: [held] }], ["this"]);
  expect(await waits()).toMatchObject({ what: "held" });
  await other.cancelRun({ runId });
  expect(await ended()).toMatchObject({ state: RunState.CANCELED, calls: [{ state: "canceled" }] });
});
