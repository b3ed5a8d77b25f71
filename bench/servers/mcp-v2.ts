import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { reportUsage } from "./report-usage.ts";

// The bare MCP server by version 2 of the SDK, as that serves HTTP: without sessions, a server for each request. By its
// low-level class, which costs little more than half of what a server with registered tools does.
const tools = [{ name: "noop", description: "Does nothing.", inputSchema: { type: "object" as const } }];
const handler = createMcpHandler(() => {
  const server = new Server({ name: "bare", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", () => ({ content: [{ type: "text", text: "" }] }));
  return server;
});

const http = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    void (async () => {
      const { method = "GET", headers } = request;
      const parsedBody: unknown = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
      const asked = new Request("http://localhost/mcp", { method, headers: headers as Record<string, string> });
      const answer = await handler.fetch(asked, { parsedBody });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      for await (const piece of answer.body ?? []) response.write(piece);
      response.end();
    })();
  });
});
http.listen(0, "127.0.0.1", () => reportUsage({ url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` }));
