import type { JsonObject } from "@bufbuild/protobuf";
import type { Plugin, ReadPlugin } from "../../lib/plugin/plugin.ts";
import { type PluginProblem, problemText } from "../../lib/plugin/problem.ts";
import type { ToolDeclaration } from "../../lib/plugin/tool-declaration.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { commandLine, levelText } from "./describe-program.ts";
import { serverLines } from "./describe-servers.ts";

/** A plugin for a person: what it is, and what each of its tools runs and may do. */
export function pluginText({ manifest, tools, digest }: Plugin): string {
  const lines = manifest.tools.flatMap((tool, at) => [
    `  ${tools[at]?.spec.name ?? tool.name}: ${tool.description}`,
    `    runs    ${commandLine(tool)}`,
    `    level   ${levelText(tool)}; ${tool.timeoutSeconds} s at most${tool.concurrencySafe ? "" : ", one at a time"}`,
    `    claims  ${claims(tool)}`,
  ]);
  const names = manifest.envAllow.join(", ");
  const given = names === "" ? [] : [`  is given ${names} of the agent's environment`];
  const version = manifest.version === "" ? "" : ` ${manifest.version}`;
  const servers = manifest.servers.flatMap(serverLines);
  const all = [`${manifest.name}${version}, sha256 ${digest}`, ...lines, ...servers, ...given];
  return all.map((line) => `${visibleLine(line)}\n`).join("");
}

/** A plugin for a program. */
export function pluginJson({ folder, manifest, tools, digest }: Plugin): JsonObject {
  return {
    name: manifest.name,
    description: manifest.description,
    version: manifest.version,
    folder,
    digest,
    envAllow: [...manifest.envAllow],
    tools: manifest.tools.map((tool, at) => ({
      name: tools[at]?.spec.name ?? tool.name,
      description: tool.description,
      command: [tool.command.path, ...tool.args],
      workDir: tool.workDir,
      timeoutSeconds: tool.timeoutSeconds,
      permissionClass: tool.permissionClass,
      network: tool.network,
      concurrencySafe: tool.concurrencySafe,
      readOnly: tool.readOnly,
      destructive: tool.destructive,
      schemaDigest: tools[at]?.spec.schemaDigest ?? "",
    })),
    mcpServers: manifest.servers.map(({ name, place }) => ({
      name,
      ...(place.kind === "address"
        ? { url: place.url }
        : { command: [place.command.path, ...place.args], permissionClass: place.permissionClass }),
    })),
  };
}

/** Problems for a program. */
export function problemsJson(problems: readonly PluginProblem[]): JsonObject[] {
  return problems.map(({ line, message }) => ({ line: line ?? null, message }));
}

/** The plugin; undefined where something is wrong with it, which is printed then and ends the command with exit code 2. */
export function usable(folder: string, read: ReadPlugin, json: boolean, context: CommandContext): Plugin | undefined {
  if (read.ok) return read.plugin;
  context.setExitCode(ExitCode.USAGE);
  if (json) context.stdout.write(jsonDocument({ ok: false, problems: problemsJson(read.problems) }));
  else
    for (const problem of read.problems)
      context.stderr.write(`reeve: ${visibleLine(`${folder}: ${problemText(problem)}`)}\n`);
  return undefined;
}

function claims({ readOnly, destructive }: ToolDeclaration): string {
  if (readOnly) return "only reads";
  return destructive ? "may destroy" : "changes things";
}
