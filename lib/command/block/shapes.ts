import { forEachChild, type ParsedScript, type Statement, type SyntaxNode } from "unbash";

type Loop = Extract<SyntaxNode, { type: "While" | "ArithmeticFor" }>;

/** True for a loop without an end that starts something in the background in each turn and waits for nothing. */
export function spawnsForever(loop: Loop): boolean {
  if (loop.type === "ArithmeticFor" ? loop.test !== undefined && loop.test.end > loop.test.pos : !isEndless(loop))
    return false;
  const waits = namesIn(loop.body).some((name) => /^(?:wait|sleep|read|break|exit|inotifywait|nc|accept)$/.test(name));
  return !waits && has(loop.body, (node) => node.type === "Statement" && node.background === true);
}

function isEndless(loop: Extract<Loop, { type: "While" }>): boolean {
  const [only] = loop.clause.commands;
  const command = only?.command;
  if (loop.clause.commands.length !== 1 || command?.type !== "Command") {
    return command?.type === "ArithmeticCommand" && /^\s*1\s*$/.test(command.body);
  }
  const name = command.name?.value ?? "";
  const tests = /^(?:\[|test)$/.test(name) && /^[\w"']+$/.test(command.args[0]?.text ?? "") && command.args.length <= 2;
  if (tests) return loop.kind === "while";
  return loop.kind === "while" ? /^(?:true|:)$/.test(name) : name === "false";
}

/**
 * True where a function calls itself, by whatever way, behind a pipe or in the background, or twice in one list: a fork
 * bomb. So does a script that starts itself ($0) like that.
 */
export function hasForkBomb(script: ParsedScript): boolean {
  const calls = new Map<string, { name: string; multiplies: boolean }[]>();
  const open: SyntaxNode[] = [script];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "Function") calls.set(node.name.value, callsIn(node.body as SyntaxNode));
    forEachChild(node, (child) => void open.push(child));
  }
  if (callsIn(script).filter(({ name, multiplies }) => multiplies && name === "$0").length > 1) return true;
  return [...calls.keys()].some((name) => reaches(name, name, calls, new Set(), false));
}

function reaches(
  from: string,
  goal: string,
  calls: ReadonlyMap<string, readonly { name: string; multiplies: boolean }[]>,
  seen: Set<string>,
  multiplied: boolean,
): boolean {
  for (const { name, multiplies } of calls.get(from) ?? []) {
    const both = multiplied || multiplies;
    if (name === goal && both) return true;
    const mark = `${name} ${both}`;
    if (seen.has(mark)) continue;
    seen.add(mark);
    if (calls.has(name) && name !== goal && reaches(name, goal, calls, seen, both)) return true;
  }
  return false;
}

function callsIn(body: SyntaxNode): { name: string; multiplies: boolean }[] {
  const found: { name: string; multiplies: boolean }[] = [];
  const open: { node: SyntaxNode; multiplies: boolean }[] = [{ node: body, multiplies: false }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node } = next;
    if (node.type === "Function" && node !== body) continue;
    const multiplies =
      next.multiplies ||
      (node.type === "Pipeline" && node.commands.length > 1) ||
      (node.type === "Statement" && node.background === true) ||
      node.type === "Coproc" ||
      node.type === "ProcessSubstitution";
    if (node.type === "Command") found.push({ name: node.name?.text.replace(/["']/g, "") ?? "", multiplies });
    if (node.type === "CompoundList" || node.type === "Script") found.push(...twice(node.commands));
    forEachChild(node, (child) => void open.push({ node: child, multiplies }));
  }
  return found;
}

/** Commands that stand twice in one list. */
function twice(statements: readonly Statement[]): { name: string; multiplies: boolean }[] {
  const names = statements.map(({ command }) => (command.type === "Command" ? (command.name?.value ?? "") : ""));
  return names
    .filter((name, at) => name !== "" && names.indexOf(name) !== at)
    .map((name) => ({ name, multiplies: true }));
}

/** The commands that a loop runs itself, not in the background. */
function namesIn(root: SyntaxNode): string[] {
  const names: string[] = [];
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "Statement" && node.background === true) continue;
    if (node.type === "Command") names.push(node.name?.value ?? "");
    forEachChild(node, (child) => void open.push(child));
  }
  return names;
}

function has(root: SyntaxNode, test: (node: SyntaxNode) => boolean): boolean {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (test(node)) return true;
    forEachChild(node, (child) => void open.push(child));
  }
  return false;
}
