import { type Commands, commandsOfArgv, commandsOfText } from "./command.ts";
import { deleteRules } from "./rules/delete.ts";
import { deviceRules } from "./rules/devices.ts";
import { machineRules } from "./rules/machine.ts";
import type { BlockRule } from "./rules/rule.ts";

/** Why a call is refused whoever asks. */
export interface BlockReason {
  /** The rule's name, such as "blocklist/delete-system". */
  rule: string;
  /** What the caller is told. */
  message: string;
}

/** All rules, in the order in which they are tried. */
export const BLOCK_RULES: readonly BlockRule[] = [...deleteRules, ...deviceRules, ...machineRules];

/**
 * Why a call is refused whoever asks, or undefined. Looks at `argv`, `stdin` and `cwd` of the tool "exec" and at
 * `command` and `cwd` of "shell.eval"; every other tool passes. Pure.
 *
 * It is a seat belt against accidents, not a boundary: text can always be written so that no look at it finds what it
 * does. The boundary is the agent's user, the sandbox and the human who approves.
 */
export function blockReason(tool: string, input: object): BlockReason | undefined {
  const { argv, stdin, command, cwd } = input as Record<string, unknown>;
  const folder = typeof cwd === "string" && cwd !== "" ? cwd : undefined;
  if (tool === "exec" && Array.isArray(argv)) {
    return judge(commandsOfArgv(argv.map(String), typeof stdin === "string" ? stdin : "", folder));
  }
  return tool === "shell.eval" && typeof command === "string" ? judge(commandsOfText(command, folder)) : undefined;
}

function judge(commands: Commands): BlockReason | undefined {
  if (commands === "too complex") {
    return { rule: "blocklist/too-complex", message: "has too many commands, or nests them too deep, to be checked" };
  }
  const rule = BLOCK_RULES.find((each) => commands.some((command) => each.test(command)));
  return rule && { rule: rule.name, message: rule.message };
}
