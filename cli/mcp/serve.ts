import type { Readable, Writable } from "node:stream";
import type { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { pause } from "../../client/retry.ts";
import { canceledByMessage } from "../../lib/mcp/cancelations.ts";
import { createGateServer } from "../../lib/mcp/server.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import { clientGate } from "./client-gate.ts";
import { followToolset, type ToolsetLimits } from "./followed-toolset.ts";

/** The version that clients are shown. */
const VERSION = "0.1.0";

/** How long the calls of a client that is gone have to be canceled, in milliseconds. */
const CANCEL_MS = 5000;

/** Serves one MCP client over standard input and output, until it closes them or a signal comes. */
export async function serveMcp({ registry }: Session, limits: ToolsetLimits, context: CommandContext): Promise<void> {
  const servers = new Set<Server>();
  const handlings = new Set<Promise<unknown>>();
  const onHandling = (handling: Promise<unknown>) => {
    handlings.add(handling);
    void handling.finally(() => handlings.delete(handling));
  };
  const warn = (warning: string) => context.stderr.write(`reeve: mcp: ${visibleLine(warning)}\n`);
  const toolset = followToolset(registry, limits, {
    onChanged() {
      for (const server of servers) server.sendToolListChanged().catch(() => undefined);
    },
    onWarning: warn,
  });
  const gate = clientGate(registry, toolset.current);
  const onError = (error: unknown) => warn(error instanceof Error ? error.message : String(error));
  const transport = new StdioServerTransport(context.stdin as Readable, context.stdout as unknown as Writable);
  const ended = Promise.withResolvers<void>();
  const handle = serveStdio(
    ({ era }) => {
      const canceledBy = ({ signal }: { signal: AbortSignal }) => canceledByMessage(signal);
      const server = createGateServer({
        gate,
        version: VERSION,
        onError,
        onHandling,
        ...(era === "legacy" ? { canceledBy } : {}),
      });
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
    // In 2026-07-28 what a client that is gone has called is canceled.
    await Promise.race([Promise.allSettled(handlings), pause(CANCEL_MS)]);
  }
}
