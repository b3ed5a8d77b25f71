import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { commandEnvironment } from "../../cli/stack/settings.ts";
import { type ConfigLine, type ConfigSpec, describeConfig } from "../../lib/config/config.ts";
import { agentProcessEnvironment } from "../../services/agent/config.ts";
import { deviceEnvironment } from "../../services/device-agent/config.ts";
import { policyEnvironment } from "../../services/policy/config.ts";
import { registryEnvironment } from "../../services/registry/config.ts";
import { repositoryRoot } from "../repository-root.ts";

/** Where every setting of every service is explained. Written by `npm run generate`, from the code that reads them. */
export const CONFIGURATION_FILE = join(repositoryRoot, "deploy", "CONFIGURATION.md");

/** The settings of each service's process, and of the commands beside them. */
export const ENVIRONMENTS: Readonly<Record<string, ConfigSpec>> = {
  "reeve serve registry": registryEnvironment,
  "reeve serve policy": policyEnvironment,
  "reeve serve device": deviceEnvironment,
  "reeve serve agent": agentProcessEnvironment,
  "every other command": commandEnvironment,
};

/** The document's text. */
export function configurationText(): string {
  const parts = Object.entries(ENVIRONMENTS).map(([command, spec]) => section(command, describeConfig(spec)));
  return `${HEAD}\n${parts.join("\n")}`;
}

/** What is wrong with the present document. */
export async function staleConfiguration(): Promise<string[]> {
  const written = await readFile(CONFIGURATION_FILE, "utf8").catch(() => "");
  return written === configurationText()
    ? []
    : ["deploy/CONFIGURATION.md is not what the code reads: run npm run generate"];
}

const HEAD = `# Settings

The services and the commands read their settings from the environment, where an empty variable counts as unset, and from a
configuration file in YAML (REEVE_CONFIG_FILE, or reeve/config.yaml in \`~/.config\`), where they stand under the names in the column
"in the file". A flag goes over the environment, the environment over the file, the file over the default; what has no such name, and
secrets, have no place in it. \`reeve config show\` says what is set and where it comes from, \`reeve config check\` what is wrong with a file. Durations are written as 250ms, 30s, 5m, 2h or 1d. A name that ends in _FILE holds the path of
a file, which may be mounted from a secret store.
`;

function section(command: string, lines: readonly ConfigLine[]): string {
  const rows = [...lines].sort((a, b) => (a.name < b.name ? -1 : 1)).map(row);
  return [
    `## ${command}`,
    "",
    "| name | in the file | what it is | may be | default |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

function row({ name, at, doc, expected, default: fallback, required, secret }: ConfigLine): string {
  const standard = required ? "**must be set**" : fallback === undefined || fallback === "" ? "" : `\`${fallback}\``;
  return `| \`${name}\` | ${at === undefined || secret ? "" : `\`${at}\``} | ${cell(doc)}${secret ? " A secret." : ""} | ${cell(expected)} | ${standard} |`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
