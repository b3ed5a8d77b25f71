import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { ServerProcess } from "../measure/server-process.ts";
import { MCP_HEADERS, post } from "./raw.ts";
import type { Subject } from "./subject.ts";

const INFO = { name: "bench", version: "1.0.0" };
const VERSION = "2026-07-28";
const BARE = { v1: "bare MCP", v2: "bare MCP, SDK v2", raw: "bare MCP 2026-07-28, raw" };

/**
 * A governed tool over MCP against a bare one, each by the same client: version 2 of the SDK in 2026-07-28, version 1 in
 * 2025-11-25, and a client that only posts. The bare server of version 1 has sessions, that of version 2 has none, as ours.
 */
export async function mcpFaceSubjects(
  bareV1: ServerProcess,
  bareV2: ServerProcess,
  governed: ServerProcess,
): Promise<Subject[]> {
  const face = { ...governed, url: `${governed.url}/mcp` };
  return [
    { name: BARE.v1, call: await callV1(bareV1, "noop"), usage: bareV1.usage },
    { name: BARE.v2, call: await callV2(bareV2, "noop"), usage: bareV2.usage },
    { name: BARE.raw, call: callRaw(bareV2, "noop"), usage: bareV2.usage },
    { name: "governed MCP, SDK v1", against: [BARE.v1], call: await callV1(face, "device_ping"), usage: face.usage },
    { name: "governed MCP, SDK v2", against: [BARE.v2], call: await callV2(face, "device_ping"), usage: face.usage },
    { name: "governed MCP, raw", against: [BARE.raw], call: callRaw(face, "device_ping"), usage: face.usage },
  ];
}

/** Version 2 of the SDK on a bare server of the same. */
export async function sdkV2Subject(server: ServerProcess): Promise<Subject> {
  return { name: BARE.v2, against: [BARE.v1], call: await callV2(server, "noop"), usage: server.usage };
}

async function callV1({ url, token }: ServerProcess, name: string): Promise<() => Promise<void>> {
  const client = new ClientV1(INFO);
  const transport = new TransportV1(new URL(url), { requestInit: { headers: authorized(token) } });
  // The SDK's own classes disagree under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return async () => requireSuccess(await client.callTool({ name, arguments: {} }));
}

async function callV2({ url, token }: ServerProcess, name: string): Promise<() => Promise<void>> {
  const client = new Client(INFO, { versionNegotiation: { mode: "auto" } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: authorized(token) } }),
  );
  return async () => requireSuccess(await client.callTool({ name, arguments: {} }));
}

function callRaw({ url, token }: ServerProcess, name: string): () => Promise<void> {
  const headers = {
    ...MCP_HEADERS,
    ...authorized(token),
    "mcp-protocol-version": VERSION,
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  let id = 0;
  return async () => {
    await post(url, headers, {
      jsonrpc: "2.0",
      id: ++id,
      method: "tools/call",
      params: { name, arguments: {}, _meta },
    });
  };
}

function authorized(token: string): Record<string, string> {
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

function requireSuccess(result: object): void {
  if ("isError" in result && result.isError === true)
    throw new Error(`a call over MCP failed: ${JSON.stringify(result)}`);
}
