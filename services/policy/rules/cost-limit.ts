import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { isNode, type MutableNode, nodesOf } from "./nodes.ts";

/** What stands around each value that an expression walks over. */
const CHARGED = "charged";

/**
 * The most that one evaluation of one rule may cost. One unit is an element that a comprehension looks at, for each sixteen
 * nodes of what it does with it; 16 elements of a list or 256 characters of a text that are looked through otherwise; and 16
 * characters that a pattern is matched with. An argument of a mebibyte that a rule looks through costs 4096, and two lists of
 * 500 elements that are compared with each other 250,000.
 */
export const COST_LIMIT = 250_000;

/** What an evaluation may still cost. Evaluation is synchronous, so that one counter serves all. */
let left = 0;
const overLimit = new Error(`over the cost limit of ${COST_LIMIT}`);

/** Takes what something costs off what is left. Throws where nothing is. */
export function charge(cost: number): void {
  left -= cost;
  if (left < 0) throw overLimit;
}

/** What came of an evaluation. */
export type Limited = { kind: "value"; value: unknown } | { kind: "error"; error: unknown } | { kind: "over_limit" };

/**
 * Evaluates within the limit. `exists` and `all` go on after an element that failed, and may still come to a result; one that
 * was found over the limit does not count.
 */
export function evaluateLimited(evaluate: () => unknown): Limited {
  left = COST_LIMIT;
  try {
    const value = evaluate();
    return left < 0 ? { kind: "over_limit" } : { kind: "value", value };
  } catch (error: unknown) {
    return left < 0 ? { kind: "over_limit" } : { kind: "error", error };
  }
}

/** Gives an environment the function that charges for a value and returns it. */
export function registerCharges(environment: Environment): void {
  environment.registerFunction(`${CHARGED}(dyn, int): dyn`, {
    async: false,
    handler: (value: unknown, weight: bigint) => {
      charge(costOf(value, Number(weight)));
      return value;
    },
  });
}

/** @param weight of each element for a comprehension; 0 where the value is looked through by the language itself. */
function costOf(value: unknown, weight: number): number {
  if (typeof value === "string") return value.length / 256;
  if (Array.isArray(value)) return weight > 0 ? value.length * weight : value.length / 16;
  if (value instanceof Map) return weight > 0 ? value.size * weight : 0;
  if (value instanceof Uint8Array) return value.length / 256;
  return 0;
}

/** Methods that take the same time whatever they are called on, or whose receiver is no value. */
const FREE_METHODS = new Set(["startsWith", "endsWith", "hasValue", "value", "bind", "matches", "linearMatches"]);

/**
 * Has the values that a parsed expression walks over charged for: what comprehensions range over, what `+` joins, since it
 * can double a value again and again, and within comprehensions what is searched or converted. Elsewhere that happens once,
 * and costs no more than reading the arguments did. Uses the environment only to make nodes. To be done once, before the
 * expression is checked.
 */
export function chargeWalks(environment: Environment, ast: ASTNode): void {
  const charged = (value: unknown, weight = 0): unknown => {
    if (!isNode(value) || value.op === "value" || value.op === "list") return value;
    const call = environment.parse(`${CHARGED}(null, ${weight})`).ast as unknown as { args: [string, unknown[]] };
    call.args[1][0] = value;
    return call;
  };
  const repeated = new Set<MutableNode>();
  const nodes = [...nodesOf(ast)];
  for (const node of nodes) {
    const comprehension = comprehensionOf(node);
    if (comprehension === undefined) continue;
    const [, , parameters] = node.args as [string, unknown, unknown];
    const body = [...nodesOf(parameters)];
    for (const inner of body) repeated.add(inner);
    comprehension.iterable = charged(comprehension.iterable, 1 + Math.floor(body.length / 16));
  }
  for (const node of nodes) {
    if (node.op === "+" || (repeated.has(node) && comprehensionOf(node) === undefined)) chargeOperands(node, charged);
  }
}

/** What a macro such as `exists` became; undefined for any other node. */
function comprehensionOf({ meta }: MutableNode): { iterable: unknown } | undefined {
  const args = meta?.alternate?.args;
  return args !== undefined && "iterable" in args ? args : undefined;
}

function chargeOperands({ op, args }: MutableNode, charged: (value: unknown) => unknown): void {
  if (!Array.isArray(args)) return;
  if (op === "in") args[1] = charged(args[1]);
  if (op === "+") args.splice(0, 2, charged(args[0]), charged(args[1]));
  if (op === "rcall" && !FREE_METHODS.has(String(args[0]))) args[1] = charged(args[1]);
  if (op === "call" && args[0] !== "has" && Array.isArray(args[1])) args[1] = args[1].map((one) => charged(one));
}
