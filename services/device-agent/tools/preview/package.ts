import type { Package } from "../../../../gen/ts/reeve/tools/v1/package_pb.ts";
import { cleanOutput } from "../../../../lib/sanitize/sanitize.ts";
import type { PreviewFact } from "../../../../lib/tool/preview.ts";
import { programFailed, runProgram } from "../outcome.ts";
import type { PackageManager } from "../package/managers.ts";
import { parseAptSimulation, parseAptSizes } from "../package/parse.ts";
import { installerFor, refuseRemoval } from "../package.ts";
import type { ToolContext, ToolPreviews } from "../tool.ts";

/** How much of a dry run is read, in bytes. */
const OUTPUT = 4 * 1024 * 1024;

/** What an install would bring: each package with its version and, where the manager says so, its size. */
export const packagePreviews: ToolPreviews<typeof Package> = {
  async install({ packages }, context) {
    const manager = installerFor(context);
    packages.forEach(refuseRemoval);
    const printed = await ask(manager.install(packages, true), manager, context);
    const by = { name: "package manager", value: manager.name };
    // The others print no form that is meant for programs.
    return manager.name === "apt"
      ? [by, ...(await aptFacts(printed, manager, context))]
      : [by, { name: "dry run", value: printed }];
  },
};

async function aptFacts(printed: string, manager: PackageManager, context: ToolContext): Promise<PreviewFact[]> {
  const changes = parseAptSimulation(printed);
  if (changes.length === 0) return [{ name: "installs", value: "nothing: all of it is installed" }];
  const named = changes.map(({ name, version }) => `${name}=${version}`);
  const sizes = parseAptSizes(await ask(["apt-cache", "show", "--", ...named], manager, context));
  const lines = changes.map(({ name, version, old }) => {
    const bytes = sizes.get(`${name}=${version}`);
    const from = old === "" ? "" : `, in place of ${old}`;
    return `${name} ${version}${from}${bytes === undefined ? "" : `, ${bytes} bytes to fetch`}`;
  });
  const known = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  return [
    { name: "installs", value: lines.join("\n") },
    { name: "fetches", value: `${known} bytes for ${sizes.size} of ${changes.length} packages` },
  ];
}

async function ask(argv: string[], manager: PackageManager, context: ToolContext): Promise<string> {
  const spec = { argv, cwd: "/", toolEnv: manager.env, maxOutputBytes: OUTPUT, live: false };
  const run = await runProgram(context, spec);
  if (run.exitCode !== 0) throw programFailed(argv[0] ?? "", run);
  return cleanOutput(run.stdout).text.trim();
}
