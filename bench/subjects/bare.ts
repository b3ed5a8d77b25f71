import { createClient } from "@connectrpc/connect";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { DeviceTools } from "../../gen/ts/reeve/tools/v1/device_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { ServerProcess } from "../measure/server-process.ts";
import { spawnTrue } from "../servers/true.ts";
import type { Subject } from "./subject.ts";

/** The SDK's own client against the bare MCP server: the yardstick. */
export async function mcpSubjects(server: ServerProcess): Promise<Subject[]> {
  const client = new Client({ name: "bench", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(server.url));
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  const call = (name: string) => async () => {
    await client.callTool({ name, arguments: {} });
  };
  return [
    { name: "bare MCP", call: call("noop"), usage: server.usage },
    { name: "bare MCP exec", call: call("exec"), usage: server.usage },
  ];
}

/** fetch and POST JSON. */
export function plainHttpSubjects(server: ServerProcess): Subject[] {
  const call = (capability: string) => async () => {
    const body = JSON.stringify({ capability, args: {} });
    const headers = { "content-type": "application/json" };
    const response = await fetch(server.url, { method: "POST", headers, body });
    await response.json();
  };
  return [
    { name: "plain POST", against: ["bare MCP"], call: call("noop"), usage: server.usage },
    { name: "plain POST exec", against: ["bare MCP exec"], call: call("exec"), usage: server.usage },
  ];
}

/** One unary RPC of connect-node, with nothing behind it. */
export function connectSubject(server: ServerProcess): Subject {
  const client = createClient(DeviceTools, createServiceTransport({ baseUrl: server.url }));
  const call = async () => {
    await client.ping({ text: "" });
  };
  return { name: "bare connect unary", against: ["bare MCP"], call, usage: server.usage };
}

/** Starting /bin/true in this process: what the operating system takes. */
export function spawnSubject(): Subject {
  const call = async () => {
    await spawnTrue();
  };
  return { name: "bare spawn", against: ["bare MCP exec"], call };
}
