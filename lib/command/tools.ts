import type { JsonObject } from "@bufbuild/protobuf";
import { textOf, wordsOf } from "../tool/command-problems.ts";
import { type CommandFields, commandsIn } from "../tool/commands.ts";
import type { JsonSchema } from "../tool/json-schema.ts";
import { blockedArgv, blockedText } from "./block/block.ts";
import type { BlockRule } from "./block/rules/rule.ts";
import { TooComplex } from "./limits.ts";

/** Why a call is refused whatever the caller's rights. */
export interface BlockReason {
  /** The rule's name, such as "blocklist/delete-system". */
  rule: string;
  /** For the caller. */
  message: string;
}

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
  const ofProgram = words.length === 0 ? undefined : first(() => blockedArgv(words, textOf(rest.stdin), folder));
  return ofProgram ?? (shell === undefined ? undefined : first(() => blockedText(textOf(shell), folder)));
}

function first(find: () => readonly BlockRule[]): BlockReason | undefined {
  try {
    const [rule] = find();
    return rule && { rule: rule.name, message: rule.message };
  } catch (e: unknown) {
    // A walk that leaves the stack is too complex as well: what cannot be looked at is refused.
    if (e instanceof TooComplex) return { rule: "command/too-complex", message: e.message };
    if (e instanceof RangeError) return { rule: "command/too-complex", message: "is nested too deep to be checked" };
    throw e;
  }
}
