import { forEachChild, type ParsedScript, parse, type SyntaxNode, type Word } from "unbash";
import { LIMITS, TooComplex } from "../limits.ts";

/** A shell text as its grammar sees it. */
export interface Parsed {
  script: ParsedScript;
  /** False where the text, or a substitution in it, is not valid; the script is then what could be made of it. */
  valid: boolean;
}

/** Nodes below which another level begins. */
const LEVELS = new Set([
  ..."If For ArithmeticFor Select While Subshell BraceGroup Case TestCommand Function Coproc".split(" "),
  ..."CommandExpansion ProcessSubstitution ArithmeticExpansion ParameterExpansion".split(" "),
]);

/** Parses a text. Throws TooComplex. */
export function parseShell(text: string): Parsed {
  if (Buffer.byteLength(text) > LIMITS.bytes) throw new TooComplex(`is longer than ${LIMITS.bytes} bytes`);
  const script = parse(text);
  return { script, valid: measure(script) };
}

/** The first word of a text that is one word; undefined for any other. */
export function parseWord(text: string): Word | undefined {
  const command = parse(`: ${text}`).commands[0]?.command;
  const word = command?.type === "Command" ? command.args[0] : undefined;
  return word?.type === "Word" ? word : undefined;
}

/** Counts what is in a script, without recursion, and says whether all of it is valid. */
function measure(script: ParsedScript): boolean {
  let commands = 0;
  let valid = true;
  const open: { node: SyntaxNode; level: number }[] = [{ node: script, level: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, level } = next;
    if (level > LIMITS.nesting) throw new TooComplex(`nests more than ${LIMITS.nesting} levels`);
    if (node.type === "Command") commands += 1;
    if (commands > LIMITS.commands) throw new TooComplex(`has more than ${LIMITS.commands} commands`);
    if (node.type === "Script" && "errors" in node && (node.errors?.length ?? 0) > 0) valid = false;
    if (node.type === "CommandExpansion" && node.script === undefined) valid = false;
    const below = LEVELS.has(node.type) ? level + 1 : level;
    forEachChild(node, (child) => void open.push({ node: child, level: below }));
  }
  return valid;
}
