import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { bareMcpServer } from "./bare-tools.ts";
import { reportUsage } from "./report-usage.ts";

// The bare MCP server over streamable HTTP.
const transports = new Map<string, StreamableHTTPServerTransport>();

async function open(): Promise<StreamableHTTPServerTransport> {
  const server = bareMcpServer();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => {
      transports.set(id, transport);
    },
  });
  // The SDK's own classes disagree under exactOptionalPropertyTypes.
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  return transport;
}

const http = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    void (async () => {
      const id = request.headers["mcp-session-id"];
      const transport = (typeof id === "string" ? transports.get(id) : undefined) ?? (await open());
      const body: unknown = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
      await transport.handleRequest(request, response, body);
    })();
  });
});
http.listen(0, "127.0.0.1", () => reportUsage({ url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/` }));
