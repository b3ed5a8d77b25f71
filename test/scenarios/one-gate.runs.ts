import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { watchRun } from "../../client/runs.ts";
import { RunEventSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { providerName } from "../../lib/model-tools/names.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { runReeve } from "../../testkit/cli.ts";
import type { ControlPlane } from "../../testkit/control-plane.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startServiceProcess } from "../../testkit/service-process.ts";
import type { AskedRequest, FaceAnswer, GateWay } from "./one-gate.ways.ts";

/** The ways of a run: an operator starts it, and the agent service calls, with a token of its own and no rights of the starter. */
export const RUN_WAYS: readonly (GateWay & { only: "agent" })[] = [
  {
    name: "RunService/StartRun",
    only: "agent",
    call: (plane, asked) =>
      withAgentService(plane, asked, async (url) => {
        const { run } = await clientAt(url, plane).startRun({ spec: { prompt: "Use the tool.", devices: ["this"] } });
        return run?.id ?? "";
      }),
  },
  {
    name: "reeve run start",
    only: "agent",
    call: (plane, asked) =>
      withAgentService(plane, asked, async (url) => {
        const id = `run-${asked.callId}`;
        const env = {
          REEVE_REGISTRY_URL: plane.registry.url,
          REEVE_POLICY_URL: plane.policy.url,
          REEVE_AGENT_URL: url,
        };
        const words = ["run", "start", "--id", id, "--device", "this", "Use the tool."];
        const own = { REEVE_TOKEN: plane.tokens.operator, REEVE_DATA_DIR: plane.folder };
        const { code, stderr } = await runReeve(words, { ...env, ...own });
        if (code !== 0) throw new Error(stderr);
        return id;
      }),
  },
];

/** Follows the run that is started at an agent service of its own, whose model asks for one call, to its end. */
async function withAgentService(
  plane: ControlPlane,
  { tool, params }: AskedRequest,
  start: (url: string) => Promise<string>,
): Promise<FaceAnswer> {
  await using parts = new AsyncDisposableStack();
  const turns = [{ toolUses: [{ name: providerName(tool), input: params }] }, { text: "That is all." }];
  const scripted = parts.adopt(await startScriptedModel({ turns }), (one) => one.close());
  const stateDir = await mkdtemp(join(plane.folder, "agent-"));
  parts.defer(() => rm(stateDir, { recursive: true, force: true }));
  const [port = 0] = await freePorts(1);
  const env = {
    REEVE_TOKENS_FILE: join(plane.folder, "tokens.json"),
    REEVE_AGENT_STATE_DIR: stateDir,
    REEVE_AGENT_PORT: String(port),
    REEVE_REGISTRY_URL: plane.registry.url,
    REEVE_AGENT_TOKEN: plane.tokens.agent,
    ANTHROPIC_API_KEY: "scripted",
    ANTHROPIC_BASE_URL: scripted.url,
  };
  const service = parts.adopt(await startServiceProcess("agent", port, env), (one) => one.stop());
  const client = clientAt(service.url, plane);
  const runId = await start(service.url);
  const events: string[] = [];
  let callId = "";
  for await (const event of watchRun(client, runId)) {
    events.push(toJsonString(RunEventSchema, event));
    if (event.event.case === "toolEnded") callId = event.event.value.callId;
  }
  return { callId, text: events.join("\n") + JSON.stringify(scripted.requests) };
}

function clientAt(baseUrl: string, plane: ControlPlane) {
  return createClient(RunService, createServiceTransport({ baseUrl, token: plane.tokens.operator }));
}
