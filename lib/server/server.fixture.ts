import { setImmediate as turn } from "node:timers/promises";
import type { ServiceImpl } from "@connectrpc/connect";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../auth/principal.ts";
import { createLogger } from "../log/log.ts";
import { Echo } from "./echo.fixture.ts";
import { createMetrics } from "./metrics.ts";
import { createServer, type Server, type ServerOptions } from "./server.ts";

/** Whom the test server knows, by token. */
export const people: Readonly<Record<string, Principal>> = {
  "agent-token": { id: "agent-1", kind: "agent", roles: [Role.AGENT], name: "an agent" },
  "operator-token": { id: "operator-1", kind: "operator", roles: [Role.OPERATOR], name: "an operator" },
};

/** A test server and what it logged. */
export interface EchoServer {
  server: Server;
  url: string;
  /** Lines logged so far. */
  lines: Record<string, unknown>[];
  /** Resolves with the first line that matches, now or later. */
  logged(matches: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
}

/** Serves Echo with plain echoing handlers, those of `impl` in their place. */
export async function startEcho(
  impl: Partial<ServiceImpl<typeof Echo>> = {},
  options: Partial<ServerOptions> = {},
): Promise<EchoServer> {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const server = await createServer({
    routes: (router) => router.service(Echo, { ...echo, ...impl }),
    authenticate: (authorization) => people[authorization?.replace("Bearer ", "") ?? ""],
    logger: createLogger({ service: "test", destination: { write } }),
    metrics: createMetrics({ process: false }),
    ...options,
  });
  const logged: EchoServer["logged"] = async (matches) => {
    for (;;) {
      const found = lines.find(matches);
      if (found !== undefined) return found;
      await turn();
    }
  };
  return { server, url: server.url, lines, logged };
}

const echo: ServiceImpl<typeof Echo> = {
  say: (request) => request,
  admin: (request) => request,
  forgotten: (request) => request,
  async *down(request) {
    for (const text of request.words) yield { text };
  },
  async up(requests) {
    const words: string[] = [];
    for await (const { text } of requests) words.push(text);
    return { words };
  },
  async *both(requests) {
    for await (const request of requests) yield request;
  },
};
