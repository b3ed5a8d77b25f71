import { readFile } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { Command, CommanderError } from "commander";
import type { CommandContext } from "./command-context.ts";
import { commandList } from "./command-list.ts";

/**
 * Runs one command line, without the program's name, and resolves with the exit code. Loads no more than the command
 * needs. Never rejects: what went wrong is on standard error.
 */
export async function runCli(argv: readonly string[], context: CommandContext): Promise<number> {
  let exitCode = 0;
  const end = argv.indexOf("--");
  const isJson = argv.slice(0, end < 0 ? undefined : end).includes("--json");
  const inner: CommandContext = {
    ...context,
    setExitCode: (code) => {
      exitCode = code;
    },
  };
  try {
    const { withConfig } = await import("./config/load-config.ts");
    await runCommand(helpFirst(argv), await withConfig(argv, inner));
    return exitCode;
  } catch (error: unknown) {
    return reportError(error, isJson, context);
  }
}

async function runCommand(argv: readonly string[], context: CommandContext): Promise<void> {
  const [first] = argv;
  if (first === "--version" || first === "-V") {
    context.stdout.write(`${await version()}\n`);
    return;
  }
  const program = createProgram(context);
  const entry = commandList.find(({ name }) => name === first);
  if (entry === undefined) await addSummaries(program);
  else (await entry.load())(program, context);
  if (argv.length === 0) program.help();
  await program.parseAsync([...argv], { from: "user" });
}

function createProgram(context: CommandContext): Command {
  return new Command("reeve")
    .description("The gate between an LLM agent and the machines a person owns.")
    .enablePositionalOptions()
    .exitOverride()
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      getOutHelpWidth: () => context.stdout.columns ?? 100,
      getErrHelpWidth: () => context.stderr.columns ?? 100,
      // Ours is written by reportError, in the form that was asked for.
      outputError: () => undefined,
    });
}

/** The commands by name and summary only: help and suggestions need no more. */
async function addSummaries(program: Command): Promise<void> {
  const { exitCodeHelp } = await import("./exit-codes.ts");
  for (const { name, summary } of commandList) program.command(name).description(summary);
  program
    .option("-V, --version", "show the version")
    .addHelpText("after", `\n\`reeve COMMAND --help\` says more.\n\n${exitCodeHelp}`);
}

/** `reeve help call` is `reeve call --help`. */
function helpFirst(argv: readonly string[]): readonly string[] {
  if (argv[0] !== "help") return argv;
  return [...argv.slice(1), "--help"];
}

async function reportError(error: unknown, isJson: boolean, context: CommandContext): Promise<number> {
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  // Help in place of an error has been written already.
  if (error instanceof CommanderError && error.code === "commander.help") return 2;
  const [{ describeError, errorJson, errorText }, { UsageError }, { jsonLine }] = await Promise.all([
    import("./errors/describe-error.ts"),
    import("./errors/usage-error.ts"),
    import("./print/json.ts"),
  ]);
  const shown = error instanceof CommanderError ? new UsageError(error.message.replace(/^error: /, "")) : error;
  const report = describeError(shown);
  context.stderr.write(isJson ? jsonLine(errorJson(report)) : errorText(report));
  if (context.env.REEVE_DEBUG && error instanceof Error) context.stderr.write(`${error.stack ?? ""}\n`);
  return report.exitCode;
}

/** The version of the package that this file is in, built or not. */
async function version(): Promise<string> {
  const path = findPackageJSON("..", import.meta.url);
  const manifest: unknown = path === undefined ? {} : JSON.parse(await readFile(path, "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
