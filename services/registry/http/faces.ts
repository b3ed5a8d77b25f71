import { fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { Role } from "../../../gen/ts/reeve/common/v1/access_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Source } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Call, CallSchema, CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  ListToolsResponseSchema,
} from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { requireRole } from "../../../lib/auth/principal.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { decodeInput } from "../../../lib/serve/decode-input.ts";
import type { Fallback, PlainRequest, PlainResponse } from "../../../lib/serve/plain-http.ts";
import { parseStrictJson } from "../../../lib/serve/strict-json.ts";
import { callTool } from "../calls/call-tool.ts";
import type { Calls } from "../calls/calls.ts";
import type { Directory } from "../devices/directory.ts";
import { listTools } from "../tools/list-tools.ts";

/** The largest body of POST /invoke, in bytes. */
const MAX_BODY = 4 * 1024 * 1024;

const validator = createValidator();
const CALLERS = [Role.OPERATOR, Role.AGENT];

/**
 * Plain HTTP for callers without a client: `GET /tools` and `POST /invoke`. The same call as RegistryService/CallTool,
 * with the state as HTTP status.
 */
export function httpFaces(calls: Calls, directory: Directory): Fallback {
  return async (request, response) => {
    if (request.path === "/tools") await only("GET", request, response, () => tools(directory, request, response));
    else if (request.path === "/invoke") await only("POST", request, response, () => invoke(calls, request, response));
    else return false;
    return true;
  };
}

async function only(
  method: string,
  request: PlainRequest,
  response: PlainResponse,
  handle: () => void | Promise<void>,
): Promise<void> {
  if (request.method === method) return handle();
  response.raw.setHeader("allow", method);
  response.json(405, { code: "unimplemented", message: `${request.path} takes ${method}` });
}

async function tools(directory: Directory, request: PlainRequest, response: PlainResponse): Promise<void> {
  requireRole(request.principal, [...CALLERS, Role.AUDITOR]);
  const wish = fromJson(ListToolsRequestSchema, { device: request.query.get("device") ?? "", pageSize: 1000 });
  const listed = await listTools(directory, wish);
  response.json(200, toJson(ListToolsResponseSchema, listed));
}

async function invoke(calls: Calls, request: PlainRequest, response: PlainResponse): Promise<void> {
  const principal = requireRole(request.principal, CALLERS);
  const body = parseStrictJson(await request.readBody(MAX_BODY), { maxBytes: MAX_BODY });
  const wish = decodeInput(validator, CallToolRequestSchema, asObject(body));
  const call = await callTool(calls, wish, principal, request.signal, Source.HTTP);
  response.json(statusOf(call), toJson(CallSchema, call) as JsonValue);
}

function asObject(body: JsonValue): JsonObject {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "", rule: "object" },
    { message: 'the body must be an object such as {"tool": "exec", "params": {"argv": ["uname"]}}' },
  );
}

const STATUS: Partial<Record<CallState, number>> = {
  [CallState.SUCCEEDED]: 200,
  [CallState.HELD]: 202,
  [CallState.QUEUED]: 202,
  [CallState.PERMITTED]: 202,
  [CallState.DISPATCHED]: 202,
  [CallState.RECEIVED]: 202,
  [CallState.DENIED]: 403,
  [CallState.REJECTED]: 403,
  [CallState.EXPIRED]: 403,
  [CallState.CANCELLED]: 409,
  [CallState.TIMED_OUT]: 504,
};

/** The HTTP status of a call: a tool that failed is the device's affair, so it is a 500, as an unknown end is. */
function statusOf(call: Call): number {
  const reason = call.error?.reason;
  if (reason === ErrorReason.DEVICE_OFFLINE || reason === ErrorReason.POLICY_UNAVAILABLE) return 503;
  return STATUS[call.state] ?? 500;
}
