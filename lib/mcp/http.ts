import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import { type AuthInfo, createMcpHandler } from "@modelcontextprotocol/server";
import type { Principal } from "../auth/principal.ts";
import { sendJson } from "../server/plain-http.ts";
import { canceledByDeparture, createCancelations } from "./cancelations.ts";
import { directCall } from "./direct-call.ts";
import type { McpGate } from "./gate.ts";
import { paramMismatch } from "./param-headers.ts";
import { serveCall } from "./serve-call.ts";
import { createGateServer, type GateServerOptions } from "./server.ts";
import { createToolChanges } from "./tool-changes.ts";
import type { McpToolset } from "./toolset.ts";

/** A message of an authenticated client. */
export interface McpMessage {
  headers: IncomingHttpHeaders;
  /** Aborted when the connection is gone; with a fault as its reason where this server ends it. */
  signal: AbortSignal;
  body: JsonValue;
  principal: Principal;
}

/** MCP over Streamable HTTP, without a session: each message is served for itself, by whichever replica it reaches. */
export interface McpHttp {
  answer(message: McpMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/** What it is made with. */
export interface McpHttpOptions extends Pick<GateServerOptions, "version" | "approvalUrl" | "waitMs" | "onError"> {
  gateOf(principal: Principal): McpGate;
  /** The tools of now, for clients that follow their changes. */
  toolset(): McpToolset;
}

/** The headers of a message that the protocol knows. Authorization is not among them. */
const HEADERS = /^(?:accept|content-type|mcp-[\w-]+)$/;

/** What names the client that a message of 2025-11-25 is from. */
const SESSION = "mcp-session-id";

/** Serves both generations of the protocol. The caller and its origin have been checked before. */
export function createMcpHttp({ gateOf, toolset, ...options }: McpHttpOptions): McpHttp {
  const cancelations = createCancelations();
  const changes = createToolChanges(toolset);
  const handler = createMcpHandler(
    ({ era, authInfo }) => {
      const { principal, client, signal } = callerIn(authInfo);
      const canceledBy: GateServerOptions["canceledBy"] =
        era === "legacy" ? ({ id }) => cancelations.open(client, id) : () => canceledByDeparture(signal);
      return createGateServer({ ...options, gate: gateOf(principal), canceledBy });
    },
    { bus: changes, onerror: () => undefined },
  );
  return {
    async answer({ headers, signal, body, principal }, response) {
      const session = headers[SESSION];
      const client = `${principal.id} ${typeof session === "string" ? session : ""}`;
      cancelations.take(client, body);
      const gate = gateOf(principal);
      const mismatch = await paramMismatch(headers, body, gate);
      if (mismatch !== undefined) return sendJson(response, 400, mismatch);
      const call = directCall(headers, body);
      if (call !== undefined) {
        const canceled = call.isModern ? canceledByDeparture(signal) : cancelations.open(client, call.id);
        return serveCall(call, { ...options, gate, signal, canceled }, response);
      }
      const request = new Request("http://localhost/mcp", { method: "POST", headers: knownHeaders(headers), signal });
      const extra: Caller = { principal, client, signal };
      const authInfo = { token: "", clientId: principal.id, scopes: [], extra: { ...extra } };
      const answer = await handler.fetch(request, { parsedBody: body, authInfo });
      const sent = new Map(answer.headers);
      // It belongs to HTTP/1.1, where node sets it.
      sent.delete("connection");
      // Nothing is kept for it: it distinguishes clients with the same token when they cancel.
      if (isInitialize(body)) sent.set(SESSION, randomUUID());
      response.writeHead(answer.status, Object.fromEntries(sent));
      await send(answer, response, signal);
    },
    close: () => handler.close(),
  };
}

interface Caller {
  principal: Principal;
  client: string;
  signal: AbortSignal;
}

/** What `answer` has put there. */
function callerIn(authInfo: AuthInfo | undefined): Caller {
  const caller = authInfo?.extra as Partial<Caller> | undefined;
  const { principal, client, signal } = caller ?? {};
  if (principal === undefined || client === undefined || signal === undefined)
    throw new TypeError("a message of no caller");
  return { principal, client, signal };
}

async function send(answer: Response, response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    for await (const piece of answer.body ?? []) {
      if (!response.write(piece)) await once(response, "drain", { signal });
    }
  } catch (error: unknown) {
    if (!signal.aborted) throw error;
  }
  response.end();
}

function knownHeaders(headers: IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" && HEADERS.test(name) ? [[name, value]] : [],
  );
}

function isInitialize(body: JsonValue): boolean {
  return typeof body === "object" && body !== null && !Array.isArray(body) && body.method === "initialize";
}
