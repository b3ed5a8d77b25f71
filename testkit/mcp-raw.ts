import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { commandOf } from "./mcp-clients.ts";

/** A request of 2026-07-28, as it goes over the wire. */
export interface RawRequest {
  jsonrpc: "2.0";
  id: number;
  method: string;
  params: Record<string, unknown>;
}

/** What it is answered. */
export interface RawAnswer {
  result?: Record<string, unknown>;
  error?: { code: number };
}

/** Sends requests as they are: the SDK's clients take no task as a result. */
export interface RawMcp {
  send(request: RawRequest): Promise<RawAnswer>;
  close(): Promise<void>;
}

/** Over HTTP, with the headers that the protocol wants. */
export function rawHttp(url: string, token: string): RawMcp {
  return {
    async send(request) {
      const name = request.params.name ?? request.params.taskId;
      const response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          authorization: `Bearer ${token}`,
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": request.method,
          ...(typeof name === "string" && { "mcp-name": name }),
        },
        body: JSON.stringify(request),
      });
      return (await response.json()) as RawAnswer;
    },
    close: async () => undefined,
  };
}

/** To `reeve mcp` in a process of its own. */
export async function rawStdio(env: Record<string, string>): Promise<RawMcp> {
  const transport = new StdioClientTransport(commandOf(env, []));
  const open = new Map<number, (answer: RawAnswer) => void>();
  transport.onmessage = (message) => {
    if ("id" in message && !("method" in message)) open.get(Number(message.id))?.(message as unknown as RawAnswer);
  };
  await transport.start();
  return {
    async send(request) {
      const { promise, resolve } = Promise.withResolvers<RawAnswer>();
      open.set(request.id, resolve);
      await transport.send(request as JSONRPCMessage);
      return promise;
    },
    close: () => transport.close(),
  };
}
