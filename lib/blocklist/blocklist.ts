import type { JsonObject } from "@bufbuild/protobuf";
import { textOf, wordsOf } from "../tool/command-problems.ts";
import { type CommandFields, commandsIn } from "../tool/commands.ts";
import type { JsonSchema } from "../tool/json-schema.ts";
import { type Commands, commandsOfArgv, commandsOfText } from "./command.ts";
import { deleteRules } from "./rules/delete.ts";
import { deviceRules } from "./rules/devices.ts";
import { machineRules } from "./rules/machine.ts";
import type { BlockRule } from "./rules/rule.ts";

/** Why a call is refused whatever the caller's rights. */
export interface BlockReason {
  /** The rule's name, such as "blocklist/delete-system". */
  rule: string;
  /** For the caller. */
  message: string;
}

/** All rules, in the order in which they are tried. */
export const BLOCK_RULES: readonly BlockRule[] = [...deleteRules, ...deviceRules, ...machineRules];

/**
 * Why a call is refused whatever the caller's rights, or undefined. Looks at every command in the arguments, as the tool's schema
 * marks its fields; a tool that runs no command of its caller passes. Pure.
 *
 * It is a seat belt against accidents, not a boundary: text can always be written so that no look at it finds what it
 * does. The boundary is the agent's user, the sandbox and the human who approves.
 */
export function blockReason(schema: JsonSchema, args: JsonObject): BlockReason | undefined {
  for (const command of commandsIn(schema, args)) {
    const reason = reasonAgainst(command);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function reasonAgainst({ argv, foreign_argv: foreign, shell, ...rest }: CommandFields): BlockReason | undefined {
  const folder = textOf(rest.folder) || undefined;
  const words = wordsOf((argv ?? foreign)?.value);
  const ofProgram = words.length === 0 ? undefined : matching(commandsOfArgv(words, textOf(rest.stdin), folder));
  return ofProgram ?? (shell === undefined ? undefined : matching(commandsOfText(textOf(shell), folder)));
}

function matching(commands: Commands): BlockReason | undefined {
  if (commands === "too complex") {
    return { rule: "blocklist/too-complex", message: "has too many commands, or nests them too deep, to be checked" };
  }
  const rule = BLOCK_RULES.find((each) => commands.some((command) => each.test(command)));
  return rule && { rule: rule.name, message: rule.message };
}
