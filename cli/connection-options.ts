import { type Command, Option } from "commander";
import type { CommandContext } from "./command-context.ts";
import { openSession, type Session } from "./session.ts";
import type { TargetFlags } from "./target.ts";

/** The words that say where to go, for a command that reads its own arguments. */
export const connectionWords = ["registry", "policy", "token", "ca-file"] as const;

/** What the connection flags mean, for help. */
export const connectionHelp: Readonly<Record<(typeof connectionWords)[number], string>> = {
  registry: "the registry's address (REEVE_REGISTRY_URL)",
  policy: "policy's address (REEVE_POLICY_URL)",
  token: "the bearer token; better in REEVE_TOKEN, which other users cannot see",
  "ca-file": "the authorities that https addresses are trusted by (REEVE_CA_FILE); default: the system's",
};

/** What stands for each word's value, for help. */
export const connectionValues: Readonly<Record<(typeof connectionWords)[number], string>> = {
  registry: "URL",
  policy: "URL",
  token: "TOKEN",
  "ca-file": "FILE",
};

/** What each word says of the target. */
export const connectionFlags: Readonly<Record<(typeof connectionWords)[number], keyof TargetFlags>> = {
  registry: "registry",
  policy: "policy",
  token: "token",
  "ca-file": "caFile",
};

/** Adds --registry, --policy, --token and --ca-file to a command. */
export function withConnection(command: Command): Command {
  return command
    .addOption(new Option("--registry <url>", connectionHelp.registry))
    .addOption(new Option("--policy <url>", connectionHelp.policy))
    .addOption(new Option("--token <token>", connectionHelp.token))
    .addOption(new Option("--ca-file <file>", connectionHelp["ca-file"]));
}

/** Runs something with a session of an operator, which is closed after it; see Session.operator. */
export function withOperator<T>(
  context: CommandContext,
  flags: TargetFlags,
  run: (operator: Session) => Promise<T>,
): Promise<T> {
  return withSession(context, flags, async ({ operator }) => run(await operator.open()));
}

/** Runs something with a session, which is closed after it. */
export async function withSession<T>(
  context: CommandContext,
  flags: TargetFlags,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await openSession(context, flags);
  try {
    return await run(session);
  } finally {
    session.close();
  }
}
