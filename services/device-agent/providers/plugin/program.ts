import { join } from "node:path";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { expandEnv, variablesIn } from "../../../../lib/plugin/env-template.ts";
import { isUnchanged, type Plugin } from "../../../../lib/plugin/plugin.ts";
import type { PermissionClass, ProgramDeclaration } from "../../../../lib/plugin/program-declaration.ts";
import type { ServerDeclaration } from "../../../../lib/plugin/server-declaration.ts";
import type { Executor } from "../../executor/executor.ts";
import type { OpenSpec } from "../../executor/open-program.ts";
import { type Isolation, meets } from "../../executor/sandbox/isolation.ts";

/** Variables of the agent's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The level of the sandbox that a class stands for. */
export const ISOLATION: Readonly<Record<PermissionClass, Isolation>> = {
  read_only: "read_only",
  workspace: "workspace",
  host: "none",
};

/** How far a server is kept apart: not at all where the device did not start it. */
export function isolationOf({ place }: ServerDeclaration): Isolation {
  return place.kind === "program" ? ISOLATION[place.permissionClass] : "none";
}

/** What Python would leave in the plugin's folder is a change of the plugin. */
const QUIET = { PYTHONDONTWRITEBYTECODE: "1" };

/** How a plugin's program is run. */
export function programSpec(
  { folder }: Plugin,
  { command, args, workDir, env: declared, permissionClass, network }: ProgramDeclaration,
  env: Environment,
): OpenSpec {
  const program = command.kind === "own" ? join(folder, command.path) : command.path;
  return {
    argv: [program, ...args],
    cwd: workDir.startsWith("/") ? workDir : join(folder, workDir),
    toolEnv: { ...QUIET, ...Object.fromEntries(declared.map(([name, parts]) => [name, expandEnv(parts, env)])) },
    isolation: ISOLATION[permissionClass],
    network,
    shows: [folder],
  };
}

/** Why a program cannot be run here as it has to be, or undefined. */
export function whyNotProgram(
  { command, env: declared, permissionClass }: ProgramDeclaration,
  executor: Pick<Executor, "isolation" | "shortfall" | "resolve">,
  env: Environment,
): string | undefined {
  const level = ISOLATION[permissionClass];
  if (!meets(executor.isolation, level))
    return `it runs at the sandbox level ${level}, which this device cannot keep: ${executor.shortfall}`;
  if (command.kind === "name" && executor.resolve(command.path) === undefined)
    return `${command.path} is not on the PATH`;
  return whyUnset(declared, env);
}

/** Why values cannot be given that refer to the agent's environment, or undefined. */
export function whyUnset(declared: ProgramDeclaration["env"], env: Environment): string | undefined {
  const unset = declared.flatMap(([, parts]) => variablesIn(parts)).filter((name) => env[name] === undefined);
  if (unset.length === 0) return undefined;
  return `the agent's environment has no ${[...new Set(unset)].join(", ")}, which it refers to`;
}

/** Fault: NOT_AVAILABLE{tool,program} where the plugin is not what was accepted. */
export async function requireUnchanged(tool: string, plugin: Plugin): Promise<void> {
  if (await isUnchanged(plugin)) return;
  const { manifest, folder } = plugin;
  const message = `the plugin ${manifest.name} is not what was accepted any more, so nothing ran: ${acceptHint(folder)}`;
  throw fault(ErrorReason.NOT_AVAILABLE, { tool, program: manifest.name }, { message });
}

/** What its owner does to have a plugin used. */
export function acceptHint(folder: string): string {
  return `look at it, then \`reeve plugin accept ${folder}\``;
}
