import { create, fromJson, type JsonObject, type Message, toJsonString } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { CallEventSchema, CallToolResponseSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import {
  DeviceAgentService,
  DeviceCommandSchema,
  type ExecuteCommand,
  type ExecutionFinished,
  LinkRequestSchema,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import {
  type WatchFanOutResponse,
  WatchFanOutResponseSchema,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { providerName } from "../../lib/model-tools/names.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { BUILT_IN_SERVICES, toolMethods } from "../../lib/toolschema/built-in.ts";
import { runInline } from "../../services/agent/loop/run-inline.ts";
import { newRunInput } from "../../services/agent/run-input/run-input.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { createRegistryCaller } from "../../services/agent/toolbox/registry-caller.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import { openCallStream } from "../../testkit/call-stream.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { callerOf } from "../../testkit/clients.ts";
import type { ControlPlane } from "../../testkit/control-plane.ts";
import { startAndWatch } from "../../testkit/fan-outs.ts";
import { MCP_CLIENTS, type McpClient, type McpClientName, STDIO_CLIENTS } from "../../testkit/mcp-clients.ts";
import type { WayName } from "./one-gate.data.ts";

/** What a caller wants. */
export interface AskedRequest {
  as: "operator" | "agent";
  tool: string;
  params: JsonObject;
  callId: string;
}

/** What came of it. */
export interface FaceAnswer {
  /** The call's id, where the way makes it. */
  callId: string;
  /** All that the caller was given, as text. */
  text: string;
}

/** A way that leads through the registry. */
export interface GateWay {
  name: WayName;
  call(plane: ControlPlane, asked: AskedRequest): Promise<FaceAnswer>;
}

/** The ways that lead through the registry. Each waits for the call's end. */
export const GATE_WAYS: readonly GateWay[] = [
  {
    name: "CallService/CallTool",
    async call(plane, { as, ...asked }) {
      const answer = await callerOf(plane, plane.tokens[as]).registry.callTool(asked);
      return { callId: asked.callId, text: toJsonString(CallToolResponseSchema, answer) };
    },
  },
  {
    name: "CallService/CallTools",
    async call(plane, { as, ...asked }) {
      const stream = openCallStream(callerOf(plane, plane.tokens[as]).registry);
      stream.call(asked);
      await stream.ended(asked.callId);
      await stream.end();
      return {
        callId: asked.callId,
        text: stream.seen.map((event) => toJsonString(CallEventSchema, event)).join("\n"),
      };
    },
  },
  {
    name: "FanOutService/StartFanOut",
    async call(plane, { as, callId: fanOutId, ...asked }) {
      const events: WatchFanOutResponse[] = [];
      const request = { ...asked, fanOutId, devices: ["this"] };
      for await (const event of startAndWatch(callerOf(plane, plane.tokens[as]).fanOut, request)) events.push(event);
      const text = events.map((event) => toJsonString(WatchFanOutResponseSchema, event)).join("\n");
      return { callId: calledIn(events), text };
    },
  },
  { name: "a tool's own RPC", call: callByRpc },
  {
    name: "POST /invoke",
    async call(plane, { as, ...asked }) {
      const headers = { authorization: `Bearer ${plane.tokens[as]}`, "content-type": "application/json" };
      const response = await fetch(`${plane.registry.url}/invoke`, {
        method: "POST",
        headers,
        body: JSON.stringify(asked),
      });
      return { callId: asked.callId, text: await response.text() };
    },
  },
  {
    name: "reeve call",
    async call(plane, { as, tool, params, callId }) {
      const args = ["call", "this", tool, "--input", JSON.stringify(params), "--call-id", callId, "--json"];
      const { stdout, stderr } = await runReeve(args, shellOf(plane, plane.tokens[as], plane.folder));
      return { callId, text: stdout + stderr };
    },
  },
  {
    name: "reeve call --on",
    async call(plane, { as, tool, params, callId }) {
      const options = ["--device", "this", "--fanout-id", callId, "--json"];
      const args = ["call", ...options, tool, "--input", JSON.stringify(params)];
      const { stdout, stderr } = await runReeve(args, shellOf(plane, plane.tokens[as], plane.folder));
      const lines = stdout.split("\n").filter((line) => line !== "");
      const events = lines.map((line) => fromJson(WatchFanOutResponseSchema, JSON.parse(line)));
      return { callId: calledIn(events), text: stdout + stderr };
    },
  },
  { name: "the model's loop", call: callByModel },
  {
    name: "reeve chat",
    async call(plane, { as, tool, params }) {
      const args = as === "operator" ? ["--as-operator"] : [];
      const { stdout, stderr, seen } = await chatOnce(plane, plane.tokens[as], { tool, params }, args);
      const [call] = (JSON.parse(stdout) as { calls: { callId?: string }[] }).calls;
      return { callId: call?.callId ?? "", text: stdout + stderr + seen };
    },
  },
];

/** The ways of MCP: a model calls, whatever token its client has. `reeve mcp` takes an agent's only. */
export const MODEL_WAYS: readonly (GateWay & { only?: "agent" })[] = [
  { name: "MCP 2026-07-28", call: (plane, asked) => callByMcp(overHttp("SDK v2, 2026-07-28", plane, asked), asked) },
  { name: "MCP 2025-11-25", call: (plane, asked) => callByMcp(overHttp("SDK v1, 2025-11-25", plane, asked), asked) },
  {
    name: "reeve mcp 2026-07-28",
    only: "agent",
    call: (plane, asked) => callByMcp(STDIO_CLIENTS["SDK v2, 2026-07-28"](agentShell(plane)), asked),
  },
  {
    name: "reeve mcp 2025-11-25",
    only: "agent",
    call: (plane, asked) => callByMcp(STDIO_CLIENTS["SDK v1, 2025-11-25"](agentShell(plane)), asked),
  },
];

/** The ways of a schedule: an operator makes it, and a workflow of its own calls. */
export const SCHEDULE_WAYS: readonly (GateWay & { only: "agent" })[] = [
  {
    name: "ScheduleService/RunSchedule",
    only: "agent",
    async call(plane, asked) {
      const { schedules } = callerOf(plane, plane.tokens.operator);
      const timing = { case: "every", value: { seconds: 3600n } } as const;
      const { tool, params } = asked;
      await schedules.createSchedule({ name: asked.callId, spec: { timing, device: "this", tool, params } });
      const { firing } = await schedules.runSchedule({ name: asked.callId });
      return endOfFired(plane, firing?.callId ?? "");
    },
  },
  {
    name: "reeve schedule run",
    only: "agent",
    async call(plane, { tool, params, callId: name }) {
      const shell = shellOf(plane, plane.tokens.operator, plane.folder);
      const call = ["call", "this", tool, "--input", JSON.stringify(params)];
      const added = await runReeve(["schedule", "add", "--name", name, "--cron", "0 3 * * *", "--", ...call], shell);
      if (added.code !== 0) throw new Error(added.stderr);
      const { stdout } = await runReeve(["schedule", "run", name, "--json"], shell);
      return endOfFired(plane, (JSON.parse(stdout) as { callId: string }).callId);
    },
  },
];

/** The end of a call that a schedule has made, with all that an operator sees of it. */
async function endOfFired(plane: ControlPlane, callId: string): Promise<FaceAnswer> {
  const { registry } = callerOf(plane, plane.tokens.operator);
  const events: string[] = [];
  for await (const { event } of registry.watchCall({ callId }))
    if (event !== undefined) events.push(toJsonString(CallEventSchema, event));
  return { callId, text: events.join("\n") };
}

function overHttp(name: McpClientName, plane: ControlPlane, { as }: AskedRequest): Promise<McpClient> {
  return MCP_CLIENTS[name](plane.registry.url, plane.tokens[as]);
}

function agentShell(plane: ControlPlane): Record<string, string> {
  return { ...shellOf(plane, plane.tokens.agent, plane.folder), REEVE_AGENT_TOKEN: plane.tokens.agent };
}

async function callByMcp(connecting: Promise<McpClient>, asked: AskedRequest): Promise<FaceAnswer> {
  const client = await connecting;
  try {
    const { callId, text } = await client.use(providerName(asked.tool), asked.params);
    return { callId, text };
  } finally {
    await client.close();
  }
}

/** The call that a fan-out to one device has made; the fan-out itself where it was stopped as a whole. */
function calledIn(events: readonly WatchFanOutResponse[]): string {
  const ids = events.flatMap(({ event }) => {
    if (event.case === "call") return event.value.event?.callId ?? [];
    return event.case === "plan" ? event.value.fanOutId : [];
  });
  return ids[1] ?? ids[0] ?? "";
}

async function callByRpc(plane: ControlPlane, { as, tool, params, callId }: AskedRequest): Promise<FaceAnswer> {
  const method = toolMethods(BUILT_IN_SERVICES).get(tool);
  if (method === undefined) throw new Error(`no RPC is the tool ${tool}`);
  const transport = createServiceTransport({ baseUrl: plane.registry.url, token: plane.tokens[as], protocol: "grpc" });
  try {
    const header = { "reeve-call-id": callId };
    const { message } = await transport.unary(method, undefined, undefined, header, fromJson(method.input, params));
    return { callId, text: toJsonString(method.output, message) };
  } catch (error: unknown) {
    return { callId, text: ConnectError.from(error).message };
  } finally {
    transport.close();
  }
}

/** The real `reeve chat`, whose model asks for one call. `seen` is all that the model was given. */
export async function chatOnce(
  plane: ControlPlane,
  token: string,
  { tool, params }: Pick<AskedRequest, "tool" | "params">,
  args: readonly string[] = [],
) {
  const turns = [{ toolUses: [{ name: providerName(tool), input: params }] }, { text: "That is all." }];
  const scripted = await startScriptedModel({ turns });
  try {
    const model = { ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: scripted.url };
    const words = ["chat", "--json", "--wait", "100ms", ...args, "Use the tool."];
    const ended = await runReeve(words, { ...shellOf(plane, token, plane.folder), ...model });
    return { ...ended, seen: JSON.stringify(scripted.requests) };
  } finally {
    await scripted.close();
  }
}

async function callByModel(plane: ControlPlane, { as, tool, params, callId }: AskedRequest): Promise<FaceAnswer> {
  const turns = [{ toolUses: [{ name: providerName(tool), input: params }] }, { text: "That is all." }];
  const scripted = await startScriptedModel({ turns });
  try {
    const client = callerOf(plane, plane.tokens[as]).registry;
    const toolset = await loadToolset(client);
    const result = await runInline(newRunInput({ runId: callId, toolset, prompt: "Use the tool." }), {
      model: scripted.model,
      caller: createRegistryCaller({ client, toolset }),
    });
    if (result.kind !== "done") throw new Error(`the run ended as ${result.kind}: ${result.error?.message}`);
    return { callId: result.calls[0]?.callId ?? "", text: JSON.stringify(result.messages) };
  } finally {
    await scripted.close();
  }
}

/** A way that goes past the registry, to a device. */
export interface DeviceWay {
  name: WayName;
  /** Resolves with the call's end. Rejects where the device takes no such message. */
  start(device: Client<typeof DeviceAgentService>, start: ExecuteCommand): Promise<ExecutionFinished>;
}

/** The ways that go past the registry. */
export const DEVICE_WAYS: readonly DeviceWay[] = [
  {
    name: "DeviceAgentService/Execute",
    async start(device, start) {
      return present((await device.execute({ command: start })).finished);
    },
  },
  {
    name: "DeviceAgentService/Link",
    async start(device, start) {
      const commands = [create(DeviceCommandSchema, { command: { case: "execute", value: start } })];
      let finished: ExecutionFinished | undefined;
      const requests = once(create(LinkRequestSchema, { frame: { commands } }));
      for await (const { frame } of device.link(requests)) {
        for (const { event } of frame?.events ?? []) if (event.case === "finished") finished = event.value;
      }
      return present(finished);
    },
  },
];

/** A client of the plane's device, with one of the plane's tokens. */
export function deviceClient(plane: ControlPlane, token: string): Client<typeof DeviceAgentService> {
  return createClient(DeviceAgentService, createServiceTransport({ baseUrl: plane.processes.device.url, token }));
}

async function* once<M extends Message>(message: M): AsyncGenerator<M> {
  yield message;
}

function present(finished: ExecutionFinished | undefined): ExecutionFinished {
  if (finished === undefined) throw new Error("the device sent no end");
  return finished;
}
