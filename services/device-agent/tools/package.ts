import type { MessageInitShape } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type {
  InstallRequest,
  InstallResponseSchema,
  Package,
  SearchRequest,
  SearchResponseSchema,
} from "../../../gen/ts/reeve/tools/v1/package_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { programFailed, runProgram } from "./outcome.ts";
import { PACKAGE_MANAGERS, type PackageManager } from "./package/managers.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

const DEFAULT_RESULTS = 50;

/** How much of each of the installer's two outputs is returned, in bytes: together at most 64 KiB. */
const INSTALL_OUTPUT = 32 * 1024 - 64;

/** A search in a large index prints much; it is cut by the tool, not by the executor. */
const SEARCH_OUTPUT = 8 * 1024 * 1024;

/** The system's package manager. */
export const packageTools: ToolFamily<typeof Package> = { install, search };

async function install(
  { packages, dryRun }: InstallRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof InstallResponseSchema>> {
  const manager = installerFor(context);
  packages.forEach(refuseRemoval);
  // Some managers take a name that is also a file here for that file.
  const run = await runProgram(context, {
    argv: manager.install(packages, dryRun),
    cwd: "/",
    toolEnv: manager.env,
    maxOutputBytes: INSTALL_OUTPUT,
  });
  return { manager: manager.name, output: run.stdout + run.stderr, exitCode: run.exitCode };
}

async function search(
  { query, maxResults }: SearchRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof SearchResponseSchema>> {
  const manager = managerFor("pkg.search", (each) => each.searcher, context);
  const words = query.split(" ").filter((word) => word !== "");
  const argv = manager.search(words);
  const run = await runProgram(context, {
    argv,
    cwd: "/",
    toolEnv: manager.env,
    maxOutputBytes: SEARCH_OUTPUT,
    live: false,
  });
  if (run.exitCode !== 0 && run.exitCode !== manager.nothingFound) throw programFailed(argv[0] ?? "", run);
  const found = run.exitCode === 0 ? manager.parse(run.stdout) : [];
  const limit = maxResults || DEFAULT_RESULTS;
  return { manager: manager.name, packages: found.slice(0, limit), truncated: found.length > limit };
}

/** The package manager that installs here. Fault: NOT_AVAILABLE where there is none. */
export function installerFor(context: ToolContext): PackageManager {
  return managerFor("pkg.install", (each) => each.installer, context);
}

/** "name-" makes apt remove a package. No name ends so. */
export function refuseRemoval(name: string, at: number): void {
  if (!name.endsWith("-")) return;
  const message = "a package's name does not end in a dash";
  throw invalidField(`packages[${at}]`, "name", message, { text: message });
}

function managerFor(
  tool: string,
  programOf: (manager: PackageManager) => string,
  context: ToolContext,
): PackageManager {
  const manager = PACKAGE_MANAGERS.find((each) => context.executor.resolve(programOf(each)) !== undefined);
  if (manager !== undefined) return manager;
  const program = PACKAGE_MANAGERS.map(programOf).join(", ");
  throw fault(ErrorReason.NOT_AVAILABLE, { tool, program }, { message: `none of ${program} is on this device` });
}
