import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withJson } from "../list-options.ts";

interface Flags {
  json?: true;
}

/** Registers `reeve agent` with list, show, check and schema: they read the files that configure agents. */
export function registerAgent(program: Command, context: CommandContext): void {
  const agent = program
    .command("agent")
    .description(
      "Look at the files that configure agents: *.yaml in REEVE_AGENTS_DIR, else in agents/ in the data folder. A run takes one\n" +
        "by its name.",
    );
  withJson(agent.command("list").description("List the agents, and what is wrong with the files of others.")).action(
    async ({ json }: Flags) => (await import("../agent/show.ts")).list(json === true, context),
  );
  withJson(agent.command("show").argument("<name>", "the agent's name"))
    .description("Show what an agent's file comes to.")
    .action(async (name: string, { json }: Flags) =>
      (await import("../agent/show.ts")).show(name, json === true, context),
    );
  agent
    .command("schema")
    .description("Print the JSON Schema of an agent's file, for editors.")
    .action(async () => (await import("../agent/show.ts")).schema(context));
  withJson(agent.command("check").argument("<file>", "the agent's file"))
    .description("Read an agent's file, and name each problem with its line. Exit code 2 where there is one.")
    .action(async (file: string, { json }: Flags) =>
      (await import("../agent/show.ts")).check(file, json === true, context),
    );
}
