import { create } from "@bufbuild/protobuf";
import { type RunSpec, RunSpecSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import type { AgentConfig } from "../agent-file/agent-config.ts";
import { loadAgents } from "../agent-file/load-agents.ts";
import { chooseModel } from "../providers/model-for.ts";

/** What a spec is completed from. */
export interface SpecDefaults {
  /** The folder of agents' files. */
  agentsDir: string;
  /** The model of runs that name none. */
  model: string | undefined;
  /** Where keys and addresses of models are. */
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * A spec with its agent's configuration where it leaves something out. A spec may narrow what its agent has, and never widen
 * it. Throws INVALID_INPUT that names the field: an agent or a model that is not known, a device that the agent has not.
 */
export async function resolveSpec(spec: RunSpec, { agentsDir, model, env }: SpecDefaults): Promise<RunSpec> {
  const agent = spec.agent === "" ? undefined : await findAgent(spec.agent, agentsDir, env);
  const limits = spec.limits ?? agent?.limits;
  return create(RunSpecSchema, {
    ...spec,
    model: chooseModel(spec.model || agent?.model || model, env).name,
    system: spec.system || (agent?.system ?? ""),
    devices: agent === undefined ? spec.devices : devicesOf(spec, agent),
    toolsAllowed: agent === undefined ? spec.toolsAllowed : toolsOf(spec, agent),
    onDeviceGone: spec.onDeviceGone || (agent?.onDeviceGone ?? spec.onDeviceGone),
    ...(limits && { limits }),
  });
}

async function findAgent(name: string, folder: string, env: SpecDefaults["env"]): Promise<AgentConfig> {
  const { agents, problems } = await loadAgents(folder, env);
  const agent = agents.get(name);
  if (agent !== undefined) return agent;
  const broken = problems.find(({ file }) => file.includes(`/${name}.`));
  const why =
    broken === undefined
      ? `known are: ${[...agents.keys()].join(", ") || "none"}`
      : `line ${broken.line}: ${broken.message}`;
  throw invalidField("spec.agent", "known_agent", `there is no agent ${JSON.stringify(name)}; ${why}`);
}

function devicesOf({ devices }: RunSpec, agent: AgentConfig): string[] {
  const foreign = devices.findIndex((device) => !agent.devices.includes(device));
  if (foreign >= 0) {
    const message = `the agent ${agent.name} has only: ${agent.devices.join(", ") || "no device"}`;
    throw invalidField(`spec.devices[${foreign}]`, "agent_devices", message);
  }
  return devices.length > 0 ? devices : [...agent.devices];
}

/** An empty list would mean all tools, so that one of which nothing is left is refused. */
function toolsOf({ toolsAllowed }: RunSpec, agent: AgentConfig): string[] {
  if (toolsAllowed.length === 0) return [...agent.toolsAllowed];
  if (agent.toolsAllowed.length === 0) return toolsAllowed;
  const both = toolsAllowed.filter((tool) => agent.toolsAllowed.includes(tool));
  if (both.length > 0) return both;
  const message = `the agent ${agent.name} has none of these: it has ${agent.toolsAllowed.join(", ")}`;
  throw invalidField("spec.tools_allowed", "agent_tools", message);
}
