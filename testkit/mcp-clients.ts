import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioTransportV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as AnyTransportV1 } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CLI } from "./cli.ts";
import { nodeEnv } from "./node-env.ts";

/** A tool as a client lists it. */
export interface ListedTool {
  name: string;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown> | undefined;
  annotations?: Record<string, unknown> | undefined;
}

/** What a client was answered. */
export interface ToolAnswer {
  isError: boolean;
  /** All text, a block a line. */
  text: string;
  structured: Record<string, unknown> | undefined;
  /** The call's id, where it became one. */
  callId: string;
}

/** How a tool is used. */
export interface UseOptions {
  signal?: AbortSignal;
  onProgress?: (message: string) => void;
}

/** A client of the MCP project, of either version. */
export interface McpClient {
  list(): Promise<ListedTool[]>;
  use(name: string, args: Record<string, unknown>, options?: UseOptions): Promise<ToolAnswer>;
  /** A page of the resources. */
  resources(cursor?: string): Promise<{ uris: string[]; nextCursor: string | undefined }>;
  /** The templates of resources, by their URIs. */
  templates(): Promise<string[]>;
  /** What a resource holds, as JSON. */
  read(uri: string): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

/** The clients: by the version of their SDK, and the generation of the protocol that they speak. */
export const MCP_CLIENTS = {
  "SDK v2, 2026-07-28": (url: string, token: string) => connectV2(url, token, "auto"),
  "SDK v2, 2025-11-25": (url: string, token: string) => connectV2(url, token, "legacy"),
  "SDK v1, 2025-11-25": connectV1,
} as const;

export type McpClientName = keyof typeof MCP_CLIENTS;

/** The same over standard input and output: `reeve mcp` in a process of its own. */
export const STDIO_CLIENTS = {
  "SDK v2, 2026-07-28": (env: Record<string, string>, ...args: string[]) => stdioV2(env, "auto", args),
  "SDK v2, 2025-11-25": (env: Record<string, string>, ...args: string[]) => stdioV2(env, "legacy", args),
  "SDK v1, 2025-11-25": stdioV1,
} as const;

const INFO = { name: "test", version: "1.0.0" };

function init(token: string) {
  return { requestInit: { headers: { authorization: `Bearer ${token}` } } };
}

async function connectV2(url: string, token: string, mode: "auto" | "legacy"): Promise<McpClient> {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), init(token)));
  return clientV2(client);
}

async function stdioV2(
  env: Record<string, string>,
  mode: "auto" | "legacy",
  args: readonly string[],
): Promise<McpClient> {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport(commandOf(env, args)));
  return clientV2(client);
}

async function stdioV1(env: Record<string, string>, ...args: string[]): Promise<McpClient> {
  const client = new ClientV1(INFO);
  await client.connect(new StdioTransportV1(commandOf(env, args)));
  return clientV1(client);
}

/** How `reeve mcp` is started. */
export function commandOf(env: Record<string, string>, args: readonly string[]) {
  return {
    command: process.execPath,
    args: [CLI, "mcp", ...args],
    env: { ...nodeEnv(), ...env },
    stderr: "ignore" as const,
  };
}

function clientV2(client: Client): McpClient {
  return {
    list: async () => (await client.listTools()).tools,
    async use(name, args, { signal, onProgress } = {}) {
      const options = { ...(signal && { signal }), ...(onProgress && { onprogress: progressTo(onProgress) }) };
      return answerOf(await client.callTool({ name, arguments: args }, options));
    },
    async resources(cursor) {
      const { resources, nextCursor } = await client.listResources(cursor === undefined ? {} : { cursor });
      return { uris: resources.map(({ uri }) => uri), nextCursor };
    },
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    read: async (uri) => documentOf(await client.readResource({ uri })),
    close: () => client.close(),
  };
}

async function connectV1(url: string, token: string): Promise<McpClient> {
  const client = new ClientV1(INFO);
  await client.connect(new TransportV1(new URL(`${url}/mcp`), init(token)) as AnyTransportV1);
  return clientV1(client);
}

function clientV1(client: ClientV1): McpClient {
  return {
    list: async () => (await client.listTools()).tools,
    async use(name, args, { signal, onProgress } = {}) {
      const options = { ...(signal && { signal }), ...(onProgress && { onprogress: progressTo(onProgress) }) };
      return answerOf(await client.callTool({ name, arguments: args }, undefined, options));
    },
    async resources(cursor) {
      const { resources, nextCursor } = await client.listResources(cursor === undefined ? {} : { cursor });
      return { uris: resources.map(({ uri }) => uri), nextCursor };
    },
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    read: async (uri) => documentOf(await client.readResource({ uri })),
    close: () => client.close(),
  };
}

function documentOf({ contents }: { contents: readonly object[] }): Record<string, unknown> {
  const [content] = contents as { text?: string }[];
  return JSON.parse(content?.text ?? "") as Record<string, unknown>;
}

function progressTo(onProgress: (message: string) => void) {
  return ({ message }: { message?: string | undefined }) => onProgress(message ?? "");
}

/** Anything but text is left out. */
export function answerOf(result: object): ToolAnswer {
  const { content, structuredContent, isError, _meta } = result as {
    content?: { type: string; text?: string }[];
    structuredContent?: Record<string, unknown>;
    isError?: boolean;
    _meta?: Record<string, unknown>;
  };
  const text = (content ?? []).map((block) => block.text ?? "").join("\n");
  const callId = _meta?.["reeve/call_id"];
  return {
    isError: isError === true,
    text,
    structured: structuredContent,
    callId: typeof callId === "string" ? callId : "",
  };
}
