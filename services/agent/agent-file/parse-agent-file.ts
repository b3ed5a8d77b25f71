import { join, resolve } from "node:path";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type AgentFile, AgentFileSchema } from "../../../gen/ts/reeve/agent/v1/agent_file_pb.ts";
import { OnDeviceGone, type RunLimits, RunLimitsSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { readMessage } from "../../../lib/yaml/message-reader.ts";
import { createYamlReader, type YamlNode } from "../../../lib/yaml/yaml-reader.ts";
import type { AgentConfig, FileNote, TokenPlace } from "./agent-config.ts";
import type { AgentFilePlace, Notes } from "./notes.ts";
import { readMesh } from "./read-mesh.ts";
import { allowedTools } from "./tool-names.ts";

/** An agent's file that was read. */
export interface ParsedAgentFile {
  /** Undefined where there is any problem. */
  agent: AgentConfig | undefined;
  /** Everything that is wrong, by line. */
  problems: readonly FileNote[];
  /** What was left out, and what has no effect. */
  warnings: readonly FileNote[];
}

/** The largest file, in UTF-16 code units. */
const MAX_LENGTH = 256 * 1024;

const NO_TOKENS = "a file is no place for a token: name its file in token_file, or its variable in token_env";
const HINTS = new Map(["token", "api_key", "password"].map((key) => [key, NO_TOKENS]));

/** Reads an agent's file: YAML in the shape of reeve.agent.v1.AgentFile. Pure. */
export function parseAgentFile(text: string, place: AgentFilePlace): ParsedAgentFile {
  const at = ({ line, message }: { line: number; message: string }): FileNote => ({ file: place.file, line, message });
  if (text.length > MAX_LENGTH) {
    return { agent: undefined, problems: [at({ line: 1, message: "the file is over 256 KiB" })], warnings: [] };
  }
  const reader = createYamlReader(text);
  const read = readMessage(reader, reader.root, AgentFileSchema, "an agent's file", HINTS);
  const warnings: FileNote[] = [];
  const nodeAt = (path: string): YamlNode => read.nodes.get(path) ?? reader.root;
  const notes: Notes = {
    read,
    problem: (path, message) => reader.report(nodeAt(path), message),
    warning: (path, message) => void warnings.push(at({ line: reader.lineOf(nodeAt(path)), message })),
  };
  const agent = agentOf(read.message, place, notes);
  const problems = reader.problems.toSorted((a, b) => a.line - b.line).map(at);
  return { agent: problems.length === 0 ? agent : undefined, problems, warnings };
}

function agentOf(file: AgentFile, place: AgentFilePlace, notes: Notes): AgentConfig {
  const mesh = readMesh(file, place, notes);
  return {
    name: file.name || place.name,
    file: place.file,
    model: file.model || undefined,
    system: file.system || undefined,
    devices: mesh === undefined ? file.devices : [mesh.device],
    toolsAllowed: toolsOf(file, mesh?.mode ?? Mode.UNSPECIFIED, notes),
    limits: limitsOf(file, notes),
    onDeviceGone: file.onDeviceGone === OnDeviceGone.UNSPECIFIED ? OnDeviceGone.REPORT : file.onDeviceGone,
    token: tokenOf(file, place, notes),
    deviceMesh: mesh,
  };
}

function toolsOf({ toolsAllowed, deviceMesh }: AgentFile, mode: Mode, notes: Notes): readonly string[] {
  const isMesh = toolsAllowed.length === 0;
  const path = isMesh ? "device_mesh.tools_allowed" : "tools_allowed";
  const listed = isMesh ? (deviceMesh?.toolsAllowed ?? []) : toolsAllowed;
  if (!isMesh && (deviceMesh?.toolsAllowed.length ?? 0) > 0)
    notes.problem("device_mesh.tools_allowed", "tools_allowed stands above, too: state the tools once");
  const { names, dropped } = allowedTools(listed, mode);
  for (const [index, message] of dropped) notes.warning(`${path}[${index}]`, message);
  // A list that has become empty would stand for every tool.
  if (listed.length > 0 && names.length === 0) notes.problem(path, "none of the tools in tools_allowed is left");
  return names;
}

function limitsOf({ limits, approvalWait, deviceMesh }: AgentFile, notes: Notes): RunLimits | undefined {
  if (limits?.maxWait !== undefined && approvalWait !== undefined)
    notes.problem("approval_wait", "approval_wait is another place for limits.max_wait: write one of them");
  const seconds = deviceMesh?.enabled === true ? deviceMesh.clientTimeoutS : undefined;
  const maxWait =
    limits?.maxWait ?? approvalWait ?? (seconds === undefined ? undefined : durationFromMs(seconds * 1000));
  if (maxWait === undefined) return limits;
  const all = limits ?? create(RunLimitsSchema);
  all.maxWait = maxWait;
  return all;
}

function tokenOf(
  { tokenFile, tokenEnv }: AgentFile,
  { folder, home }: AgentFilePlace,
  notes: Notes,
): TokenPlace | undefined {
  if (tokenFile !== "" && tokenEnv !== "")
    notes.problem("token_env", "token_file stands there, too: write one of them");
  if (tokenEnv !== "") return { env: tokenEnv };
  if (tokenFile === "") return undefined;
  const inHome = home !== undefined && tokenFile.startsWith("~/");
  return { file: inHome ? join(home, tokenFile.slice(2)) : resolve(folder, tokenFile) };
}
