import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { prepareMachineTokens, runTokens } from "../../cli/stack/machine-tokens.ts";
import { type Stack, startStack } from "../../cli/stack/stack.ts";
import { RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { appendOnce, linesOf } from "./runs.ts";

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

test("a run of `reeve up --durable` goes on after everything was stopped and started again", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-up-durable-")));
  opened.push(() => rm(folder, { recursive: true, force: true }));
  const dataDir = join(folder, "data");
  const mark = join(folder, "mark");
  const model = await startScriptedModel({ turns: [{ toolUses: [appendOnce(mark)] }, { text: "Appended." }] });
  opened.push(() => model.close());
  const [workerPort = 0] = await freePorts(1);
  const start = async (): Promise<Stack> => {
    const stack = await startStack({
      dataDir,
      ports: { registry: 0, policy: 0, device: 0 },
      deviceName: "this",
      mode: Mode.ALL,
      readRoots: [],
      writeRoots: [folder],
      env: { ...process.env, ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: model.url },
      logger: createLogger({ service: "test", level: "silent" }),
      agent: {
        port: 0,
        agentsDir: join(dataDir, "agents"),
        tokens: () => runTokens(dataDir),
        durable: { workerPort },
      },
    });
    opened.push(() => stack.close());
    return stack;
  };
  const first = await start();
  const { issued: tokens } = await prepareMachineTokens(first.tokens, dataDir);
  const runsOf = ({ agentUrl = "" }: Stack) =>
    createClient(RunService, createServiceTransport({ baseUrl: agentUrl, token: tokens?.operator ?? "" }));
  const stateOf = async (stack: Stack) => (await runsOf(stack).getRun({ runId: "up" })).run?.status;
  const spec = { prompt: "Append.", devices: ["this"], durable: true };
  await runsOf(first).startRun({ runId: "up", spec });
  await eventually(async () => expect((await stateOf(first))?.state).toBe(RunState.WAITING));
  await first.close();

  const second = await start();
  const callId = (await stateOf(second))?.waits[0]?.callId ?? "";
  const urls = { registry: { url: second.registryUrl }, policy: { url: second.policyUrl } };
  await approveCall(callerOf(urls, tokens?.operator ?? ""), callId);
  await eventually(async () => expect((await stateOf(second))?.state).toBe(RunState.SUCCEEDED));
  expect(await linesOf(mark)).toEqual(["ran"]);
});
