import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Waits on loopback for a browser to come back from the provider (RFC 8252, section 7.3). */
export interface Callback {
  /** Where the browser is to come back to. */
  redirectUri: string;
  /** Resolves with the whole address that the browser came back to. Rejects with the signal's reason. */
  arrived(signal: AbortSignal): Promise<URL>;
  close(): void;
}

const PATH = "/callback";
const PAGE = `<!doctype html><meta charset="utf-8"><title>Reeve</title><p>You can close this window and go back to the terminal.</p>`;

/** Listens on 127.0.0.1. @param port 0 takes any; providers that want the exact address registered need a fixed one. */
export async function listenForCallback(port: number): Promise<Callback> {
  const arrival = Promise.withResolvers<URL>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", redirectUri);
    if (request.method !== "GET" || url.pathname !== PATH) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", connection: "close" }).end(PAGE);
    arrival.resolve(url);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
  return {
    redirectUri,
    async arrived(signal) {
      const left = Promise.withResolvers<never>();
      const onAbort = () => left.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        return await Promise.race([arrival.promise, left.promise]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
