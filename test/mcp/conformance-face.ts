import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { MissingRequiredClientCapabilityError } from "@modelcontextprotocol/server";
import {
  CallApprovalSchema,
  CallSchema,
  CallSpecSchema,
  CallState,
  CallStatusSchema,
} from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallEventSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutputSchema } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import type { BegunCall, McpGate, WaitOptions } from "../../lib/mcp/gate.ts";
import { createMcpHttp } from "../../lib/mcp/http.ts";
import { mcpToolset } from "../../lib/mcp/toolset.ts";

/** What a tool of the suite does. */
interface SuiteTool {
  inputSchema?: JsonObject;
  /** What it returns, as the tool of an MCP server on a device does. Default: `{"done": true}`. */
  blocks?: (params: JsonObject) => JsonObject[];
  /** What it prints, a piece at a time, 50 ms apart. */
  prints?: readonly string[];
  /** How long a person takes to approve it, in milliseconds; taken from `seconds` of its arguments where it is true. */
  held?: number | true;
  /** How it fails: by itself, or because what runs it does. */
  fails?: ErrorReason;
  /** What its client has to have declared. */
  needs?: "sampling";
}

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const audio = { type: "audio", data: SILENCE, mimeType: "audio/wav" };
const embedded = { type: "resource", resource: { uri: "test://embedded", mimeType: "text/plain", text: "embedded" } };

const named = { type: "object", properties: { name: { type: "string" } } };

/** The tools that the suite calls by name, as far as calls of a gate can be what it wants. */
const TOOLS: Readonly<Record<string, SuiteTool>> = {
  test_simple_text: {},
  test_error_handling: { fails: ErrorReason.TOOL_FAILED },
  test_image_content: { blocks: () => [image] },
  test_audio_content: { blocks: () => [audio] },
  test_embedded_resource: { blocks: () => [embedded] },
  test_multiple_content_types: { blocks: () => [{ type: "text", text: "all" }, image, embedded] },
  test_missing_capability: { needs: "sampling" },
  test_header_parameter: {
    inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
  },
  test_tool_with_progress: { prints: ["one", "two", "three"] },
  test_streaming_elicitation: { prints: ["one"] },
  test_trigger_tool_change: {},
  greet: { inputSchema: named, blocks: ({ name }) => [{ type: "text", text: `Hello, ${name as string}!` }] },
  slow_compute: { held: true, inputSchema: { type: "object", properties: { seconds: { type: "number" } } } },
  failing_job: { held: 300, fails: ErrorReason.TOOL_FAILED },
  protocol_error_job: { held: 300, fails: ErrorReason.INTERNAL },
  json_schema_2020_12_tool: {
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
  },
};

const DEVICE = { id: "dev-1", name: "this" };

/** The face that the product serves, over a gate that plays the suite's tools; for anybody, as the suite sends no token. */
export async function startConformanceFace(): Promise<{ url: string; close(): Promise<void> }> {
  let extra: string[] = [];
  const toolset = () => {
    const names = [...Object.keys(TOOLS), ...extra];
    const offers = names.map((name) => ({ device: DEVICE, tool: toolOf(name) }));
    return mcpToolset([DEVICE], offers);
  };
  let known = toolset();
  const gate = playedGate(
    () => known,
    () => {
      extra = [...extra, `added_${extra.length}`];
      known = toolset();
    },
  );
  const http = createMcpHttp({
    gateOf: () => gate,
    toolset: () => known,
    version: "0.0.0",
    waitMs: 5000,
    onError: (error) => console.error(error),
  });
  const principal = { id: "agent", kind: "agent", roles: [Role.AGENT], name: "agent" } as const;
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const host = URL.parse(`http://${request.headers.host}`)?.hostname;
    const { origin } = request.headers;
    if (host !== "127.0.0.1" && host !== "localhost") return void response.writeHead(403).end();
    if (origin !== undefined && !/^http:\/\/(?:127\.0\.0\.1|localhost)(?::|$)/.test(origin))
      return void response.writeHead(403).end();
    if (request.method !== "POST") return void response.writeHead(405, { allow: "POST" }).end();
    request.toArray().then(async (chunks: Buffer[]) => {
      const body = parseStrictJson(Buffer.concat(chunks));
      await http.answer({ headers: request.headers, signal: gone.signal, body, principal }, response);
    }, console.error);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      await http.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function toolOf(name: string) {
  const inputSchema = TOOLS[name]?.inputSchema ?? { type: "object" };
  return create(ToolSchema, { name, description: `The suite's ${name}.`, capabilities: ["suite"], inputSchema });
}

function playedGate(toolset: () => ReturnType<typeof mcpToolset>, addTool: () => void): McpGate {
  const calls = new Map<string, PlayedCall>();
  const find = async (id: string) => {
    const call = calls.get(id);
    if (call === undefined) throw fault(ErrorReason.NOT_FOUND);
    return call;
  };
  return {
    toolset: async () => toolset(),
    async begin({ tool, params }) {
      if (tool === "test_trigger_tool_change") addTool();
      if (TOOLS[tool]?.needs !== undefined)
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
      const played = playCall(`call-${calls.size}`, TOOLS[tool] ?? {}, params);
      calls.set(played.call.id, played);
      return played;
    },
    find,
    async cancel(id) {
      const found = await find(id);
      found.end(CallState.CANCELED);
      return found.call;
    },
    list: async () => ({ calls: [...calls.values()].map(({ call }) => call).reverse(), nextPageToken: "" }),
    read: async (id) => (await find(id)).call,
  };
}

interface PlayedCall extends BegunCall {
  end(state: CallState): void;
}

function playCall(id: string, { prints = [], held, fails, blocks }: SuiteTool, params: JsonObject): PlayedCall {
  const heldMs = held === true ? Number(params.seconds ?? 0) * 1000 : held;
  const state = heldMs === undefined ? CallState.DISPATCHED : CallState.HELD;
  const approval = create(CallApprovalSchema, { id: `apr-${id}` });
  const status = create(CallStatusSchema, { state, ...(heldMs !== undefined && { approval }) });
  const call = {
    ...create(CallSchema, { id, createTime: timestampNow() }),
    spec: create(CallSpecSchema, { deviceName: "this" }),
    status,
  };
  const ended = Promise.withResolvers<void>();
  const end = (last: CallState) => {
    if (status.state !== CallState.DISPATCHED && status.state !== CallState.HELD) return;
    const output = blocks === undefined ? { done: true } : { content: blocks(params), truncated: false };
    Object.assign(status, { state: last, output, endTime: timestampNow() });
    if (last === CallState.FAILED) {
      status.errorMessage = "it failed, as the suite wants";
      status.error = create(ErrorDetailSchema, { reason: fails ?? ErrorReason.INTERNAL });
    }
    ended.resolve();
  };
  const finish = () => end(fails === undefined ? CallState.SUCCEEDED : CallState.FAILED);
  if (heldMs !== undefined) setTimeout(finish, heldMs);
  return {
    call,
    joined: false,
    end,
    async wait({ heldMs: patience, signal, onEvent }: WaitOptions) {
      if (heldMs === undefined) {
        for (const [sequence, text] of prints.entries()) {
          const output = create(ExecutionOutputSchema, { callId: id, sequence, data: Buffer.from(text) });
          await onEvent?.(create(CallEventSchema, { callId: id, event: { case: "output", value: output } }));
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        finish();
        return call;
      }
      const left = new Promise((resolve) => {
        setTimeout(resolve, patience);
        signal.addEventListener("abort", resolve, { once: true });
      });
      await Promise.race([ended.promise, left]);
      return call;
    },
  };
}
