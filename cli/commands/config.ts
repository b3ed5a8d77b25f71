import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { configPath, withConfigOption } from "../config/load-config.ts";
import type { ShowFlags } from "../config/show.ts";
import { ExitCode } from "../exit-codes.ts";
import { withJson } from "../list-options.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";

interface FileFlags {
  config?: string;
  json?: true;
}

/** Registers `reeve config` with show, check and schema. */
export function registerConfig(program: Command, context: CommandContext): void {
  const config = program
    .command("config")
    .description(
      "Look at the settings of this machine: those of the configuration file, and those of the environment.",
    );
  withConfigOption(withJson(config.command("show")))
    .description(
      "Show what is set and where it comes from. A flag goes over the environment, the environment over the file, the file\n" +
        "over the default.",
    )
    .option("--all", "also what has its default, and what is unset")
    .option("--docs", "what each setting means and may be, in place of its value")
    .action((flags: ShowFlags & FileFlags) => show(flags, context));
  withJson(config.command("check").argument("[file]", "the file; default: the one that would be read"))
    .description("Read a configuration file, and name each problem with its line. Exit code 2 where there is one.")
    .action((file: string | undefined, flags: FileFlags) => check(file, flags, context));
  config
    .command("schema")
    .description("Print the JSON Schema of the configuration file, for editors.")
    .action(async () => {
      const { default: schema } = await import("../../gen/settings/config.schema.json", { with: { type: "json" } });
      context.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
    });
}

async function show(flags: ShowFlags & FileFlags, context: CommandContext): Promise<void> {
  const path = configPath(flagOf(flags), context);
  const [{ readConfigFile }, { showConfig }] = await Promise.all([
    import("../config/config-file.ts"),
    import("../config/show.ts"),
  ]);
  const file = path === undefined ? undefined : await readConfigFile(path, context.env);
  if (file !== undefined && file.problems.length > 0) return await check(path, flags, context);
  showConfig(file, flags, context);
}

async function check(named: string | undefined, { json }: FileFlags, context: CommandContext): Promise<void> {
  const path = configPath(flagOf({ ...(named && { config: named }) }), context);
  const { problemLines, readConfigFile } = await import("../config/config-file.ts");
  const file = path === undefined ? undefined : await readConfigFile(path, context.env);
  const problems = file?.problems ?? [];
  if (problems.length > 0) context.setExitCode(ExitCode.USAGE);
  if (json) {
    const lines = problems.map(({ line, message }) => ({ line, message }));
    return void context.stdout.write(jsonDocument({ file: path ?? null, ok: problems.length === 0, problems: lines }));
  }
  if (file === undefined) return void context.stderr.write("reeve: there is no configuration file\n");
  if (problems.length === 0) {
    const count = file.values.size;
    return void context.stdout.write(`${visibleLine(file.path)}: valid, ${count} setting${count === 1 ? "" : "s"}\n`);
  }
  context.stdout.write(
    problemLines(file)
      .map((line) => `${visibleLine(line)}\n`)
      .join(""),
  );
}

function flagOf({ config }: { config?: string }): string[] {
  return config === undefined ? ["config"] : ["config", `--config=${config}`];
}
