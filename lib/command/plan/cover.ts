import type { Command, ParsedScript, Redirection, Statement } from "unbash";

/**
 * True where a script's commands, operators, blanks and comments are all that its text has. A parser that passes over what it
 * does not understand would otherwise make a plan of a part of it. For scripts of which a draft could be made.
 */
export function isCovered(script: ParsedScript, text: string): boolean {
  const spans = script.commands.flatMap(spansOf).sort((a, b) => a.pos - b.pos);
  let at = 0;
  let between = "";
  for (const { pos, end } of spans) {
    if (pos < at) return false;
    between += `${text.slice(at, pos)}\0`;
    at = end;
  }
  between += text.slice(at);
  return /^(?:[ \t\n;|&\0]|\\\n|(?:^|(?<=[ \t\n;|&]))#[^\n\0]*)*$/.test(between);
}

interface Span {
  pos: number;
  end: number;
}

function spansOf({ command }: Statement): Span[] {
  const pipes = command.type === "AndOr" ? command.commands : [command];
  return pipes
    .flatMap((pipe) => (pipe.type === "Pipeline" ? pipe.commands : [pipe]))
    .flatMap((node) => (node.type === "Command" ? spansOfCommand(node) : []));
}

function spansOfCommand(command: Command): Span[] {
  const words = command.name === undefined ? command.args : [command.name, ...command.args];
  return [...words, ...command.redirects.flatMap(spansOfRedirect)];
}

function spansOfRedirect(redirect: Redirection): Span[] {
  if (redirect.type !== "HereDoc") return [redirect];
  const body = { pos: redirect.body.pos, end: redirect.closing?.end ?? redirect.body.end };
  return [{ pos: redirect.pos, end: redirect.delimiter?.end ?? redirect.end }, body];
}
