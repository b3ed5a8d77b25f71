import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { freePorts } from "../../testkit/free-port.ts";
import type { Subject } from "../subjects/subject.ts";
import { type PeerProcess, startPeer } from "./peer-process.ts";

/** The command that starts the bare MCP server on its standard streams. */
const BARE = [process.execPath, join(import.meta.dirname, "../servers/mcp-stdio.ts")] as const;

/** One gateway in front of the bare server. */
interface Gateway {
  name: string;
  /** Its arguments, where it listens on this port and may keep files in this folder. */
  args(port: number, folder: string): string[];
  /** What it calls the tool that does nothing. */
  tool: string;
  /** Whether its clients use the older transport over server-sent events. */
  sse: boolean;
}

const GATEWAYS: readonly Gateway[] = [
  {
    name: "supergateway",
    args: (port) => [
      ...["--stdio", BARE.join(" "), "--outputTransport", "streamableHttp", "--stateful"],
      ...["--port", String(port), "--logLevel", "none"],
    ],
    tool: "noop",
    sse: false,
  },
  {
    name: "mcp-proxy",
    args: (port) => ["--port", String(port), "--host", "127.0.0.1", "--server", "stream", "--", ...BARE],
    tool: "noop",
    sse: false,
  },
  {
    name: "mcp-hub",
    args(port, folder) {
      const [command, ...args] = BARE;
      const config = join(folder, "mcp-hub.json");
      writeFileSync(config, JSON.stringify({ mcpServers: { bare: { command, args } } }));
      return ["--port", String(port), "--config", config];
    },
    tool: "bare__noop",
    sse: true,
  },
];

/** The SDK's client through each gateway to the bare server. They govern and record nothing. */
export async function gatewaySubjects(
  parts: AsyncDisposableStack,
  commands: string,
  folder: string,
): Promise<Subject[]> {
  const ports = await freePorts(GATEWAYS.length);
  return await Promise.all(
    GATEWAYS.map(async (gateway, at) => {
      const port = ports[at] ?? 0;
      const command = [join(commands, gateway.name), ...gateway.args(port, folder)];
      const peer = parts.adopt(await startPeer(command, port, folder), (one) => one.stop());
      return await subjectOf(gateway, port, peer);
    }),
  );
}

async function subjectOf({ name, tool, sse }: Gateway, port: number, { usage }: PeerProcess): Promise<Subject> {
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const client = await connected(() => (sse ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url)));
  const call = async () => {
    await client.callTool({ name: tool, arguments: {} });
  };
  return { name, against: ["bare MCP"], call, usage };
}

/** A gateway may listen before it has started the server behind it, and refuses until then. */
async function connected(transport: () => SSEClientTransport | StreamableHTTPClientTransport): Promise<Client> {
  for (let left = 50; ; left--) {
    const client = new Client({ name: "bench", version: "1.0.0" });
    try {
      await client.connect(transport() as Parameters<typeof client.connect>[0]);
      return client;
    } catch (error: unknown) {
      if (left === 0) throw error;
      await sleep(200);
    }
  }
}
