import { type DescMethod, fromJson, getOption, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { CallSchema } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  CallService,
  CallToolRequestSchema,
  GetCallRequestSchema,
} from "../../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { access, type Role } from "../../../../gen/ts/reeve/options/v1/access_pb.ts";
import {
  ListToolsRequestSchema,
  ListToolsResponseSchema,
  ToolService,
} from "../../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { requireRole } from "../../../../lib/auth/principal.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { decodeInput } from "../../../../lib/json/message.ts";
import { parseStrictJson } from "../../../../lib/json/strict-json.ts";
import type { Fallback, PlainRequest, PlainResponse } from "../../../../lib/server/plain-http.ts";
import { callTool } from "../../calls/call-tool.ts";
import type { Calls } from "../../calls/calls.ts";
import type { Directory } from "../../devices/directory.ts";
import { listTools } from "../list-tools.ts";
import { statusOf } from "./status.ts";
import { locationOf, waitingText } from "./waiting.ts";

/** The largest body of POST /invoke, in bytes. */
const MAX_BODY = 4 * 1024 * 1024;

const validator = createValidator();

/**
 * Plain HTTP for callers without a client: `GET /tools`, `POST /invoke` and `GET /calls/{id}`. The same as
 * ToolService's ListTools, CallService's CallTool and GetCall, with the state of a call that was sent as HTTP status.
 */
export function httpFaces(calls: Calls, directory: Directory): Fallback {
  return async (request, response) => {
    if (request.path === "/tools") await only("GET", request, response, () => tools(directory, request, response));
    else if (request.path === "/invoke") await only("POST", request, response, () => invoke(calls, request, response));
    else if (request.path.startsWith("/calls/"))
      await only("GET", request, response, () => show(calls, request, response));
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
  response.json(405, { code: "unimplemented", message: `${request.path.slice(0, 200)} takes ${method}` });
}

async function tools(directory: Directory, request: PlainRequest, response: PlainResponse): Promise<void> {
  requireRole(request.principal, rolesOf(ToolService.method.listTools));
  const listing = fromJson(ListToolsRequestSchema, { device: request.query.get("device") ?? "", pageSize: 1000 });
  const listed = await listTools(directory, listing);
  response.json(200, toJson(ListToolsResponseSchema, listed));
}

async function invoke(calls: Calls, request: PlainRequest, response: PlainResponse): Promise<void> {
  const principal = requireRole(request.principal, rolesOf(CallService.method.callTool));
  const body = parseStrictJson(await request.readBody(MAX_BODY), { maxBytes: MAX_BODY });
  const toCall = decodeInput(validator, CallToolRequestSchema, asObject(body));
  const call = await callTool(calls, toCall, principal, request.signal, Ingress.HTTP);
  const status = statusOf(call);
  const json = toJson(CallSchema, call) as JsonObject;
  if (status !== 202) return response.json(status, json);
  response.raw.setHeader("location", locationOf(call));
  response.json(status, { ...json, message: waitingText(call) });
}

async function show(calls: Calls, request: PlainRequest, response: PlainResponse): Promise<void> {
  const principal = requireRole(request.principal, rolesOf(CallService.method.getCall));
  const { callId } = decodeInput(validator, GetCallRequestSchema, { callId: idIn(request.path) });
  const call = await calls.read(callId, principal);
  response.json(200, toJson(CallSchema, call) as JsonValue);
}

function idIn(path: string): string {
  const text = path.slice("/calls/".length);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function asObject(body: JsonValue): JsonObject {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "", rule: "object" },
    { message: 'the body must be an object such as {"tool": "exec", "params": {"argv": ["uname"]}}' },
  );
}

/** Those who may call the RPC that a path stands for. */
function rolesOf(method: DescMethod): readonly Role[] {
  return getOption(method, access).roles;
}
