import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { spawnTrue } from "./true.ts";

/** An MCP server with the two tools and nothing around them: no policy, no grant, no record. */
export function bareMcpServer(): McpServer {
  const server = new McpServer({ name: "bare", version: "1.0.0" });
  server.registerTool("noop", { description: "Does nothing." }, () => ({ content: [{ type: "text", text: "" }] }));
  server.registerTool("exec", { description: "Runs /bin/true." }, async () => ({
    content: [{ type: "text", text: JSON.stringify(await spawnTrue()) }],
  }));
  return server;
}
