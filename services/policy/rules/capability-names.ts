import { isNode } from "./nodes.ts";

/** A text that an expression compares with a capability of the tool, and where it begins in the expression. */
export interface CapabilityName {
  name: string;
  offset: number;
}

const COMPARISONS = new Set(["==", "!=", "in"]);

/**
 * The capabilities that a parsed expression names: each text that is compared with `tool.capabilities`, with one of them,
 * or with the variable of a macro over them.
 */
export function capabilityNames(ast: unknown): CapabilityName[] {
  const found: CapabilityName[] = [];
  collect(ast, new Set(), found);
  return found;
}

function collect(value: unknown, variables: ReadonlySet<string>, found: CapabilityName[]): void {
  if (Array.isArray(value)) {
    for (const item of value) collect(item, variables, found);
  }
  if (!isNode(value)) return;
  const { op, args } = value;
  if (COMPARISONS.has(op) && Array.isArray(args)) {
    const [left, right] = args as unknown[];
    if (isCapability(left, variables)) found.push(...textsIn(right));
    if (isCapability(right, variables)) found.push(...textsIn(left));
  }
  collect(args, op === "rcall" ? inside(args, variables) : variables, found);
}

/** The variables that stand for capabilities within a macro such as `tool.capabilities.exists(c, …)`. */
function inside(args: unknown, variables: ReadonlySet<string>): ReadonlySet<string> {
  const [macro, receiver, parameters] = args as [unknown, unknown, unknown];
  const [variable, bound] = Array.isArray(parameters) ? parameters : [];
  if (!isNode(variable) || variable.op !== "id") return variables;
  const inner = new Set(variables);
  if (isCapability(macro === "bind" ? bound : receiver, variables)) inner.add(String(variable.args));
  else inner.delete(String(variable.args));
  return inner;
}

/** Whether a node is `tool.capabilities`, a part of them, or a variable for one. */
function isCapability(node: unknown, variables: ReadonlySet<string>): boolean {
  if (!isNode(node)) return false;
  if (node.op === "id") return variables.has(String(node.args));
  if (!Array.isArray(node.args)) return false;
  const [first, second] = node.args as unknown[];
  if (node.op === "rcall") return isCapability(second, variables);
  if (node.op !== "." && node.op !== "[]") return false;
  const field = isNode(second) ? second.args : second;
  return (isNode(first) && first.args === "tool" && field === "capabilities") || isCapability(first, variables);
}

function textsIn(node: unknown): CapabilityName[] {
  if (!isNode(node)) return [];
  if (node.op === "list" && Array.isArray(node.args)) return node.args.flatMap(textsIn);
  return node.op === "value" && typeof node.args === "string" ? [{ name: node.args, offset: node.start }] : [];
}
