import { Argument, type Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";

/** By service: the variable with its database's URL, and what brings that up to date. */
const SERVICES = {
  registry: {
    variable: "REEVE_REGISTRY_DATABASE_URL",
    migrate: async (url: string) => (await import("../../services/registry/migrate.ts")).migrateRegistry(url),
  },
  policy: {
    variable: "REEVE_POLICY_DATABASE_URL",
    migrate: async (url: string) => (await import("../../services/policy/storage/storage.ts")).migratePolicy(url),
  },
  agent: {
    variable: "REEVE_AGENT_DATABASE_URL",
    migrate: async (url: string) => (await import("../../services/agent/migrate.ts")).migrateAgent(url),
  },
} as const;

/** Registers `reeve migrate`. */
export function registerMigrate(program: Command, context: CommandContext): void {
  const names = Object.keys(SERVICES) as (keyof typeof SERVICES)[];
  program
    .command("migrate")
    .description(
      "Bring a service's PostgreSQL database up to date, before its new version is rolled out. Every start does the same;\n" +
        "several at once are safe. The database's URL comes from the environment.",
    )
    .addArgument(new Argument("<service>", "whose database").choices(names))
    .action(async (name: keyof typeof SERVICES) => {
      const { variable, migrate } = SERVICES[name];
      const url = context.env[variable];
      if (!url) throw new UsageError(`${variable} is not set`, ["set it to the database's URL, postgres://…"]);
      await migrate(url);
      context.stderr.write(`reeve: the database of ${name} is up to date\n`);
    });
}
