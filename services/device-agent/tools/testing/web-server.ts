import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A web server on this machine, and what it was asked. */
export interface WebServer extends AsyncDisposable {
  port: number;
  /** "http://127.0.0.1:PORT" */
  origin: string;
  asked: { method: string; path: string; headers: IncomingMessage["headers"]; body: string }[];
}

/** Starts one at 127.0.0.1. */
export async function startWebServer(
  answer: (request: { path: string; body: string }, response: ServerResponse, nth: number) => void,
): Promise<WebServer> {
  const asked: WebServer["asked"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      const body = Buffer.concat(chunks).toString();
      asked.push({ method, path, headers, body });
      answer({ path, body }, response, asked.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
