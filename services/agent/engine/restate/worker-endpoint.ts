import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { endpoint } from "@restatedev/restate-sdk";
import type { Logger } from "../../../../lib/log/log.ts";
import { runWorkflow, type WorkflowPorts } from "./run-workflow.ts";

/** Where a worker is invoked, and by whom. */
export interface WorkerOptions {
  host: string;
  port: number;
  /** The request identities of the Restate servers that may invoke it. At least one: anybody else is refused. */
  identityKeys: readonly string[];
  logger: Logger;
}

/** A worker that is listening. */
export interface WorkerEndpoint {
  port: number;
  close(): Promise<void>;
}

/** Opens the endpoint that Restate carries runs on: HTTP/2 in cleartext, each request signed by the server. */
export async function openWorkerEndpoint(ports: WorkflowPorts, options: WorkerOptions): Promise<WorkerEndpoint> {
  const { host, port, identityKeys, logger } = options;
  if (identityKeys.length === 0) throw new TypeError("a worker needs the request identity of its Restate server");
  const sdk = endpoint()
    .bind(runWorkflow(ports))
    .withIdentityV1(...identityKeys)
    .setLogger(({ level, replaying, context }, message) => {
      if (replaying || level === "trace" || level === "debug" || level === "info") return;
      const fields = { run_id: context?.key, restate: String(message).slice(0, 500) };
      logger.debug(fields, "attempt of a run ended");
    });
  const server = createServer(sdk.http2Handler());
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      // Attempts under way are left: another worker, or this one when it is back, goes on where they are.
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
