import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import type { McpGate } from "./gate.ts";

/** Headers by their names in lower case. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** An argument that a client of 2026-07-28 repeats in a header, so that a proxy can route by it (SEP-2243). */
interface Declaration {
  /** In lower case. */
  header: string;
  /** Where the argument is. */
  path: readonly string[];
}

/** The keyword by which a tool's schema declares one. */
const KEYWORD = "x-mcp-header";

/** How a value is wrapped that a header cannot hold as it is. */
const WRAPPED = /^=\?base64\?(.*)\?=$/s;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The protocol's code for a header that says other than the body. */
const HEADER_MISMATCH = -32020;

/** Read once: a schema is the same object as long as its tool is offered. */
const known = new WeakMap<JsonObject, readonly Declaration[]>();

/** The refusal of a call of 2026-07-28 whose headers do not repeat its arguments; undefined for any other message. */
export async function paramMismatch(
  headers: Headers,
  body: JsonValue,
  gate: Pick<McpGate, "toolset">,
): Promise<object | undefined> {
  if (!isObject(body) || body.method !== "tools/call" || !isObject(body.params)) return undefined;
  const { name, arguments: args = {}, _meta: meta } = body.params;
  if (!isObject(meta) || !(PROTOCOL_VERSION_META_KEY in meta) || !isObject(args)) return undefined;
  const tool = typeof name === "string" ? (await gate.toolset()).byName.get(name) : undefined;
  const message = tool && headerMismatch(paramHeaders(tool.inputSchema), args, headers);
  return message === undefined
    ? undefined
    : { jsonrpc: "2.0", id: body.id ?? null, error: { code: HEADER_MISMATCH, message } };
}

/** The headers in which a client repeats arguments of a tool with this schema. */
function paramHeaders(schema: JsonObject): readonly Declaration[] {
  const found = known.get(schema) ?? declarationsIn(schema, []);
  known.set(schema, found);
  return found;
}

/**
 * The header that does not repeat its argument, with why; undefined where all do. An argument that is absent needs none. A
 * proxy that trusts a header and a gate that trusts the body would otherwise see two different calls.
 */
function headerMismatch(declarations: readonly Declaration[], args: JsonObject, headers: Headers): string | undefined {
  for (const { header, path } of declarations) {
    const value = path.reduce<JsonValue | undefined>((at, key) => (isObject(at) ? at[key] : undefined), args);
    if (value === undefined || value === null || typeof value === "object") continue;
    const sent = headers[header];
    if (typeof sent !== "string") return `the header ${header} is missing`;
    const text = decoded(sent);
    if (text === undefined) return `the header ${header} holds no valid Base64`;
    const isSame = typeof value === "number" ? text !== "" && Number(text) === value : text === String(value);
    if (!isSame) return `the header ${header} and the argument ${path.join(".")} differ`;
  }
  return undefined;
}

function declarationsIn(schema: JsonObject, path: readonly string[]): Declaration[] {
  if (!isObject(schema.properties)) return [];
  return Object.entries(schema.properties).flatMap(([key, property]): Declaration[] => {
    if (!isObject(property)) return [];
    const name = property[KEYWORD];
    const here = [...path, key];
    return [
      ...(typeof name === "string" ? [{ header: `mcp-param-${name.toLowerCase()}`, path: here }] : []),
      ...declarationsIn(property, here),
    ];
  });
}

function decoded(value: string): string | undefined {
  const [, wrapped] = WRAPPED.exec(value) ?? [];
  if (wrapped === undefined) return value;
  if (!BASE64.test(wrapped)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(wrapped, "base64"));
  } catch {
    return undefined;
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
