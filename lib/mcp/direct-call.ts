import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import type { ToolCallParams } from "./handle-call.ts";

/** The generation of the protocol that states all it needs in each request. */
const MODERN = "2026-07-28";

/** Those before it of which a call reads the same. */
const LEGACY: ReadonlySet<string> = new Set(["2025-06-18", "2025-11-25"]);

/** A `tools/call` that is served without the SDK. */
export interface DirectCall {
  id: string | number;
  isModern: boolean;
  params: ToolCallParams & JsonObject;
  /** What the client says of itself; undefined in 2025. */
  envelope: JsonObject | undefined;
  progressToken: string | number | undefined;
}

/**
 * A message as a plain call of a tool, in either generation. Undefined for every other message, and for a call with anything
 * about it that the protocol refuses or leaves open: the SDK has the right error for each. A server of the SDK for each
 * request costs several times what the gate does, and this is the one request that comes often.
 */
export function directCall(headers: IncomingHttpHeaders, body: JsonValue): DirectCall | undefined {
  if (!isObject(body) || body.jsonrpc !== "2.0" || body.method !== "tools/call" || !takesBoth(headers))
    return undefined;
  const { id, params } = body;
  if (!isId(id) || !isObject(params) || !isCall(params)) return undefined;
  const meta = params._meta ?? {};
  if (!isObject(meta)) return undefined;
  const { progressToken } = meta;
  if (progressToken !== undefined && !isId(progressToken)) return undefined;
  const isModern = PROTOCOL_VERSION_META_KEY in meta;
  if (isModern ? !isPlainlyModern(headers, params, meta) : !isPlainlyLegacy(headers)) return undefined;
  return { id, isModern, params, envelope: isModern ? meta : undefined, progressToken };
}

/** Every header repeats the body (SEP-2243). */
function isPlainlyModern(headers: IncomingHttpHeaders, params: ToolCallParams, meta: JsonObject): boolean {
  return (
    meta[PROTOCOL_VERSION_META_KEY] === MODERN &&
    isObject(meta[CLIENT_CAPABILITIES_META_KEY]) &&
    headers["mcp-protocol-version"] === MODERN &&
    headers["mcp-method"] === "tools/call" &&
    headers["mcp-name"] === params.name
  );
}

function isPlainlyLegacy(headers: IncomingHttpHeaders): boolean {
  const version = headers["mcp-protocol-version"];
  return typeof version === "string" && LEGACY.has(version) && headers["mcp-method"] === undefined;
}

function isCall(params: JsonObject): params is JsonObject & ToolCallParams {
  const { name, arguments: args, requestState, inputResponses, task } = params;
  return (
    typeof name === "string" &&
    (args === undefined || isObject(args)) &&
    (requestState === undefined || typeof requestState === "string") &&
    (inputResponses === undefined || isObject(inputResponses)) &&
    task === undefined
  );
}

function takesBoth({ accept, "content-type": type }: IncomingHttpHeaders): boolean {
  const isJson = type === "application/json" || type === "application/json; charset=utf-8";
  return isJson && accept?.includes("application/json") === true && accept.includes("text/event-stream");
}

function isId(value: JsonValue | undefined): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
