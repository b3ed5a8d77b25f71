import { toJson } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { AgentFileSchema } from "../../gen/ts/reeve/agent/v1/agent_file_pb.ts";
import { OnDeviceGoneSchema, RunLimitsSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ModeSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { messageSchema } from "../../lib/yaml/message-schema.ts";
import type { AgentConfig, FileNote } from "../../services/agent/agent-file/agent-config.ts";
import { agentsFolder, loadAgents, readAgentFile } from "../../services/agent/agent-file/load-agents.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { noteListed } from "../list-notes.ts";
import { enumName } from "../print/enum-name.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { listTable } from "../print/table.ts";
import { dataDir } from "../profile.ts";

/** `reeve agent list`. */
export async function list(json: boolean, context: CommandContext): Promise<void> {
  const { agents, problems, warnings } = await load(context);
  if (problems.length > 0) context.setExitCode(ExitCode.USAGE);
  if (json) {
    const all = [...agents.values()].map(agentJson);
    return void context.stdout.write(
      jsonDocument({ agents: all, problems: problems.map(noteJson), warnings: warnings.map(noteJson) }),
    );
  }
  const rows = [...agents.values()].map((agent) => [
    agent.name,
    agent.model ?? "the service's",
    agent.devices.join(", ") || "none",
    agent.toolsAllowed.length === 0 ? "all" : String(agent.toolsAllowed.length),
    agent.file,
  ]);
  context.stdout.write(listTable(["NAME", "MODEL", "DEVICES", "TOOLS", "FILE"], rows, context, { keep: ["NAME"] }));
  noteListed({ things: "agents", shown: rows.length, nextPageToken: "" }, context);
  writeNotes(problems, warnings, context);
}

/** `reeve agent show`. */
export async function show(name: string, json: boolean, context: CommandContext): Promise<void> {
  const { agents, problems } = await load(context);
  const agent = agents.get(name);
  if (agent === undefined) {
    const known = [...agents.keys()].join(", ") || "none";
    throw new UsageError(`no valid file configures an agent ${JSON.stringify(name)}`, [
      `known are: ${known}`,
      ...problems.map(noteLine),
    ]);
  }
  if (json) return void context.stdout.write(jsonDocument(agentJson(agent)));
  const rows = Object.entries(textOf(agent)).filter(([, value]) => value !== "");
  const width = Math.max(...rows.map(([key]) => key.length)) + 2;
  context.stdout.write(rows.map(([key, value]) => `${key.padEnd(width)}${visible(value)}\n`).join(""));
}

/** `reeve agent schema`. */
export function schema({ stdout }: CommandContext): void {
  const $schema = "https://json-schema.org/draft/2020-12/schema";
  const document = { $schema, title: "An agent of Reeve", ...messageSchema(AgentFileSchema) };
  stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
}

/** `reeve agent check`. */
export async function check(file: string, json: boolean, context: CommandContext): Promise<void> {
  const { agent, problems, warnings } = await readAgentFile(file, context.env);
  if (agent === undefined) context.setExitCode(ExitCode.USAGE);
  if (json) {
    const document = {
      file,
      ok: agent !== undefined,
      problems: problems.map(noteJson),
      warnings: warnings.map(noteJson),
    };
    return void context.stdout.write(jsonDocument(document));
  }
  if (agent !== undefined) context.stdout.write(`${visibleLine(file)}: valid, the agent ${visibleLine(agent.name)}\n`);
  writeNotes(problems, warnings, context);
}

function load({ env }: CommandContext) {
  return loadAgents(agentsFolder(env, dataDir(env)), env);
}

function writeNotes(problems: readonly FileNote[], warnings: readonly FileNote[], { stderr }: CommandContext): void {
  for (const note of problems) stderr.write(`${visibleLine(noteLine(note))}\n`);
  for (const { file, line, message } of warnings)
    stderr.write(`${visibleLine(noteLine({ file, line, message: `warning: ${message}` }))}\n`);
}

function noteJson({ file, line, message }: FileNote) {
  return { file, line, message };
}

function noteLine({ file, line, message }: FileNote): string {
  return `${file}:${line}: ${message}`;
}

function agentJson(agent: AgentConfig) {
  const { name, file, devices, toolsAllowed, token, deviceMesh: mesh } = agent;
  return {
    name,
    file,
    model: agent.model ?? null,
    system: agent.system ?? null,
    devices: [...devices],
    toolsAllowed: [...toolsAllowed],
    limits: agent.limits ? toJson(RunLimitsSchema, agent.limits) : null,
    onDeviceGone: enumName(OnDeviceGoneSchema, agent.onDeviceGone),
    token: token === undefined ? null : { ...token },
    deviceMesh:
      mesh === undefined
        ? null
        : {
            device: mesh.device,
            mode: enumName(ModeSchema, mesh.mode),
            deviceAgentUrl: mesh.deviceAgentUrl ?? null,
            urlFrom: mesh.urlFrom ?? null,
            manifestId: mesh.manifestId ?? null,
          },
  };
}

function textOf(agent: AgentConfig): Record<string, string> {
  const { limits, token, deviceMesh: mesh } = agent;
  const wait = limits?.maxWait;
  return {
    agent: agent.name,
    file: agent.file,
    model: agent.model ?? "the service's",
    system: agent.system ?? "the one of every agent",
    devices: agent.devices.join(", ") || "none: the model can only talk",
    tools: agent.toolsAllowed.join(", ") || "all that the devices offer",
    "waits for a person": wait === undefined ? "as long as the service does" : `${durationMs(wait) / 1000}s`,
    "calls as":
      token === undefined
        ? "the agent service"
        : "file" in token
          ? `the token in ${token.file}`
          : `the token in ${token.env}`,
    mode: mesh === undefined ? "" : enumName(ModeSchema, mesh.mode),
    "device's agent": mesh?.deviceAgentUrl === undefined ? "" : `${mesh.deviceAgentUrl}${fromText(mesh.urlFrom)}`,
    "registry dials":
      mesh?.deviceAgentUrl === undefined
        ? ""
        : `REEVE_DIAL_DEVICES=${mesh.device}=${mesh.deviceAgentUrl}, where it dials`,
    manifest: mesh?.manifestId === undefined ? "" : `${mesh.manifestId} (for display; the device enforces its own)`,
  };
}

function fromText(variable: string | undefined): string {
  return variable === undefined ? "" : ` (from ${variable})`;
}
