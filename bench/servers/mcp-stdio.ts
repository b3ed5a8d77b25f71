import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { bareMcpServer } from "./bare-tools.ts";

// The bare MCP server as the gateways start it: a command that speaks over its standard streams.
await bareMcpServer().connect(new StdioServerTransport());
