import { Agent, request as httpRequest } from "node:http";
import type { ServerProcess } from "../measure/server-process.ts";
import type { Subject } from "./subject.ts";

/**
 * node:http with kept connections on both sides: the least that a caller can cost, so that the servers are what is compared.
 */
export async function rawSubjects(mcp: ServerProcess, governed: ServerProcess): Promise<Subject[]> {
  const session = await openMcpSession(mcp.url);
  let id = 1;
  const callTool = async () => {
    const params = { name: "noop", arguments: {} };
    await post(mcp.url, { ...MCP_HEADERS, ...session }, { jsonrpc: "2.0", id: id++, method: "tools/call", params });
  };
  const headers = { "content-type": "application/json", authorization: `Bearer ${governed.token}` };
  const invoke = async () => {
    await post(`${governed.url}/invoke`, headers, { tool: "device.ping", params: {} });
  };
  return [
    { name: "bare MCP, raw", against: ["bare MCP"], call: callTool, usage: mcp.usage },
    { name: "governed /invoke, raw", against: ["bare MCP", "bare MCP, raw"], call: invoke, usage: governed.usage },
  ];
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** What every message of MCP over HTTP says. */
export const MCP_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

const FAILED = /"error":\{|"isError":true/;

const PROTOCOL_VERSION = "2025-11-25";

async function openMcpSession(url: string): Promise<Record<string, string>> {
  const clientInfo = { name: "bench", version: "1.0.0" };
  const params = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo };
  const { headers } = await post(url, MCP_HEADERS, { jsonrpc: "2.0", id: 0, method: "initialize", params });
  const session = { "mcp-session-id": String(headers["mcp-session-id"]), "mcp-protocol-version": PROTOCOL_VERSION };
  await post(url, { ...MCP_HEADERS, ...session }, { jsonrpc: "2.0", method: "notifications/initialized" });
  return session;
}

/** Posts JSON. Rejects for a status that is no success, and for an error or a failed tool in the answer. */
export function post(url: string, headers: Record<string, string>, value: unknown) {
  const body = JSON.stringify(value);
  return new Promise<{ headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
    const options = { method: "POST", agent, headers: { ...headers, "content-length": Buffer.byteLength(body) } };
    const request = httpRequest(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const { statusCode = 0 } = response;
        if (statusCode < 200 || statusCode > 202 || FAILED.test(text)) reject(new Error(`${statusCode} ${text}`));
        else resolve({ headers: response.headers });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}
