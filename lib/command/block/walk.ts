import type { CommandNode, ParsedScript, PipelineNode, Statement } from "unbash";
import { runSimple } from "./run.ts";
import { spawnsForever } from "./shapes.ts";
import { type Body, nested, type State, subshell, UNKNOWN } from "./state.ts";
import { fieldsOf, textOf } from "./words.ts";

/**
 * Follows a script as a shell would run it, every branch once, and collects the commands with what is known of their
 * words. Returns what it prints, as far as that is known.
 */
export function walkScript(script: { readonly commands: readonly Statement[] }, state: State): string {
  return walkAll(script.commands, state);
}

/** Runs a substitution in a shell of its own. */
export function substitute(script: ParsedScript | undefined, state: State): string {
  if (script === undefined) return UNKNOWN;
  state.found.walked.add(script);
  return walkScript(script, nested(state));
}

function walkAll(statements: readonly Statement[], state: State): string {
  return statements
    .map((statement) => {
      const detached = statement.background === true;
      return walkAny(statement.command, detached ? subshell(state) : state, detached);
    })
    .join("");
}

function walkAny(node: PipelineNode | Statement["command"], state: State, detached: boolean): string {
  if (node.type === "AndOr") return node.commands.map((command) => walkAny(command, state, detached)).join("");
  if (node.type === "Pipeline") return walkPipeline(node.commands, state, detached);
  return walkCommand(node, state, detached);
}

function walkPipeline(commands: readonly CommandNode[], state: State, detached: boolean): string {
  if (commands.length === 1 && commands[0]) return walkCommand(commands[0], state, detached);
  let stdin = state.stdin;
  let output = "";
  for (const command of commands) {
    output = walkCommand(command, subshell(state, { stdin }), true);
    stdin = output;
  }
  return output;
}

function walkCommand(node: CommandNode, state: State, detached: boolean): string {
  switch (node.type) {
    case "Command":
      return runSimple(node, state, detached);
    case "Function":
      state.functions.set(node.name.value, node.body as Body);
      return "";
    case "Coproc":
      return walkBody(node.body, subshell(state), true);
    case "Redirected":
      return walkRedirected(node, state, detached);
    default:
      return walkBody(node, state, detached);
  }
}

function walkRedirected(node: Extract<CommandNode, { type: "Redirected" }>, state: State, detached: boolean): string {
  const outer = state.stdin;
  for (const redirect of node.redirects) {
    if (redirect.type === "HereString") state.stdin = textOf(redirect.target, state, substitute);
    if (redirect.type === "HereDoc") state.stdin = redirect.body.text;
  }
  const output = walkBody(node.command, state, detached);
  state.stdin = outer;
  // The group's own redirections are those of a command without a name.
  runSimple({ name: undefined, args: [], redirects: node.redirects, prefix: [] }, state, detached, output);
  return output;
}

/** The body of a compound command or function. */
export function walkBody(
  node: Body | Extract<CommandNode, { type: "Command" }>,
  state: State,
  detached: boolean,
): string {
  switch (node.type) {
    case "Command":
      return runSimple(node, state, detached);
    case "Redirected":
      return walkRedirected(node, state, detached);
    case "CompoundList":
      return walkAll(node.commands, state);
    case "BraceGroup":
      return walkAll(node.body.commands, state);
    case "Subshell":
      return walkAll(node.body.commands, subshell(state));
    case "If":
      return [node.clause, node.then, ...node.elif.flatMap((each) => [each.clause, each.then]), node.else]
        .map((list) => (list === undefined ? "" : walkAll(list.commands, state)))
        .join("");
    case "While":
      if (spawnsForever(node)) state.found.shapes.add("fork-bomb");
      return walkAll(node.clause.commands, state) + walkAll(node.body.commands, state);
    case "For":
    case "Select":
      return walkFor(node, state);
    case "ArithmeticFor":
      if (spawnsForever(node)) state.found.shapes.add("fork-bomb");
      return walkAll(node.body.commands, state);
    case "Case":
      return node.items.map((item) => walkAll(item.body.commands, state)).join("");
    default:
      return "";
  }
}

function walkFor(node: Extract<Body, { type: "For" | "Select" }>, state: State): string {
  const values = node.wordlist === undefined ? state.positional : fieldsOf(node.wordlist, state, substitute);
  const outputs = (values.length === 0 ? [UNKNOWN] : values).map((value) => {
    state.vars.set(node.name.value, [value]);
    return walkAll(node.body.commands, state);
  });
  return outputs.join("");
}
