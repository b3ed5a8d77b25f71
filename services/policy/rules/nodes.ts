/** A node of a parsed expression, as far as rules change it before it is checked. */
export interface MutableNode {
  op: string;
  args: unknown;
  start: number;
  /** What a macro became. */
  meta?: { alternate?: { args: { iterable: unknown; step: unknown } } };
}

/** A node and all that it is made of, as they are written; not what macros became. */
export function* nodesOf(value: unknown): Generator<MutableNode> {
  if (Array.isArray(value)) {
    for (const item of value) yield* nodesOf(item);
  } else if (isNode(value)) {
    yield value;
    yield* nodesOf(value.args);
  }
}

/** Whether a value is a node of a parsed expression. */
export function isNode(value: unknown): value is MutableNode {
  return typeof value === "object" && value !== null && "op" in value && "args" in value && "start" in value;
}
