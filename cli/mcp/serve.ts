import type { Readable, Writable } from "node:stream";
import type { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { createMcpServer } from "../../lib/mcp/server.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import { clientGate } from "./client-gate.ts";
import { followToolset } from "./followed-toolset.ts";

/** The version that clients are shown. */
const VERSION = "0.1.0";

/** Serves one MCP client over standard input and output, until it closes them or a signal comes. */
export async function serveMcp({ registry }: Session, context: CommandContext): Promise<void> {
  const servers = new Set<Server>();
  const notify = () => {
    for (const server of servers) server.sendToolListChanged().catch(() => undefined);
  };
  const toolset = followToolset(registry, notify);
  const gate = clientGate(registry, toolset.current);
  const onError = (error: unknown) =>
    context.stderr.write(`reeve: mcp: ${visibleLine(error instanceof Error ? error.message : String(error))}\n`);
  const transport = new StdioServerTransport(context.stdin as Readable, context.stdout as unknown as Writable);
  const ended = Promise.withResolvers<void>();
  const handle = serveStdio(
    () => {
      const server = createMcpServer({ gate, version: VERSION, onError });
      servers.add(server);
      server.onclose = () => servers.delete(server);
      return server;
    },
    { transport, onerror: onError },
  );
  const off = context.onInterrupt(ended.resolve);
  context.stdin.once("end", ended.resolve);
  context.stdin.once("close", ended.resolve);
  try {
    await ended.promise;
  } finally {
    off();
    toolset.close();
    await handle.close();
  }
}
