import { fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { CallSchema } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  CallService,
  CallToolRequestSchema,
  GetCallOutputRequestSchema,
  GetCallOutputResponseSchema,
  GetCallRequestSchema,
  WatchCallResponseSchema,
} from "../../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import {
  ListToolsRequestSchema,
  ListToolsResponseSchema,
  ToolService,
} from "../../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { decodeInput } from "../../../../lib/json/message.ts";
import { parseStrictJson } from "../../../../lib/json/strict-json.ts";
import type { Fallback, PlainResponse } from "../../../../lib/server/plain-http.ts";
import { callTool } from "../../calls/call-tool.ts";
import type { Calls } from "../../calls/calls.ts";
import { readCallOutput } from "../../calls/read-call-output.ts";
import { type WatchOrder, watchCall } from "../../calls/watch-call.ts";
import type { Directory } from "../../devices/directory.ts";
import { listTools } from "../list-tools.ts";
import type { McpFace } from "../mcp/mcp-face.ts";
import { createRouter, type HttpRequest } from "./router.ts";
import { statusOf } from "./status.ts";
import { locationOf, waitingText } from "./waiting.ts";

/** The largest body of POST /invoke, in bytes. */
const MAX_BODY = 4 * 1024 * 1024;

const validator = createValidator();

/** Plain HTTP for callers without a client: each path is the same as an RPC, with a call's state as the HTTP status. */
export function httpFaces(calls: Calls, directory: Directory, mcp: McpFace): Fallback {
  const { method: rpc } = CallService;
  return createRouter([
    {
      method: "GET",
      path: "/tools",
      rpc: ToolService.method.listTools,
      answer: (request, response) => tools(directory, request, response),
    },
    {
      method: "POST",
      path: "/invoke",
      rpc: rpc.callTool,
      answer: (request, response) => invoke(calls, request, response),
    },
    {
      method: "GET",
      path: "/calls/{id}",
      rpc: rpc.getCall,
      answer: async (request, response) =>
        response.json(200, toJson(CallSchema, await calls.read(callIdOf(request), request.principal))),
    },
    {
      method: "GET",
      path: "/calls/{id}/output",
      rpc: rpc.getCallOutput,
      answer: (request, response) => output(calls, request, response),
    },
    {
      method: "GET",
      path: "/calls/{id}/events",
      rpc: rpc.watchCall,
      events: (request) => eventsOf(calls, request),
    },
    {
      method: "POST",
      path: "/mcp",
      rpc: rpc.callTool,
      answer: (request, response) => mcp.answer(request, response),
    },
  ]);
}

async function tools(directory: Directory, { plain, principal }: HttpRequest, response: PlainResponse): Promise<void> {
  const listing = fromJson(ListToolsRequestSchema, { device: plain.query.get("device") ?? "", pageSize: 1000 });
  const listed = await listTools(directory, listing, principal);
  response.json(200, toJson(ListToolsResponseSchema, listed));
}

async function invoke(calls: Calls, { plain, principal }: HttpRequest, response: PlainResponse): Promise<void> {
  const body = parseStrictJson(await plain.readBody(MAX_BODY), { maxBytes: MAX_BODY });
  const toCall = decodeInput(validator, CallToolRequestSchema, asObject(body));
  const { call } = await callTool(calls, toCall, principal, plain.signal, Ingress.HTTP);
  const status = statusOf(call);
  const json = toJson(CallSchema, call) as JsonObject;
  if (status !== 202) return response.json(status, json);
  response.raw.setHeader("location", locationOf(call));
  response.json(status, { ...json, message: waitingText(call) });
}

async function output(calls: Calls, request: HttpRequest, response: PlainResponse): Promise<void> {
  const { query } = request.plain;
  const range = { fromSequence: query.get("from") ?? 0, maxBytes: query.get("max_bytes") ?? 0 };
  const order = decodeInput(validator, GetCallOutputRequestSchema, { callId: callIdOf(request), ...range });
  response.json(200, toJson(GetCallOutputResponseSchema, await readCallOutput(calls, order, request.principal)));
}

async function* eventsOf(calls: Calls, request: HttpRequest): AsyncGenerator<JsonValue> {
  const { principal, plain } = request;
  for await (const response of watchCall(calls, orderOf(request), principal, plain.signal)) {
    yield toJson(WatchCallResponseSchema, response);
  }
}

function orderOf(request: HttpRequest): WatchOrder {
  const from = request.plain.query.get("from");
  const callId = callIdOf(request);
  if (from === null) return { callId };
  return {
    callId,
    from: decodeInput(validator, GetCallOutputRequestSchema, { callId, fromSequence: from }).fromSequence,
  };
}

function callIdOf({ parameters: [callId = ""] }: HttpRequest): string {
  return decodeInput(validator, GetCallRequestSchema, { callId }).callId;
}

function asObject(body: JsonValue): JsonObject {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "", rule: "object" },
    { message: 'the body must be an object such as {"tool": "exec", "params": {"argv": ["uname"]}}' },
  );
}
