import { once } from "node:events";
import type { ServerResponse } from "node:http";

/** How often a stream on which nothing is sent is kept open by a comment, in milliseconds. */
const KEEPALIVE_MS = 15_000;

/** The answer to one request: JSON, or a stream of events from the first notification on. */
export interface Answer {
  /** Sends a notification. Resolves when it may be followed by another. */
  notify(method: string, params: object): Promise<void>;
  /** Sends the last message. */
  end(status: number, message: object): void;
}

/**
 * An answer on a response whose head is not sent yet. What takes long becomes a stream by itself, so that no proxy takes it
 * for one that has ended.
 */
export function createAnswer(response: ServerResponse, signal: AbortSignal): Answer {
  const keepalive = setInterval(() => {
    open();
    response.write(": keepalive\n\n");
  }, KEEPALIVE_MS);
  keepalive.unref();
  signal.addEventListener("abort", () => clearInterval(keepalive), { once: true });
  const open = () => {
    if (response.headersSent) return;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
  };
  return {
    async notify(method, params) {
      if (signal.aborted) return;
      open();
      if (!response.write(eventOf({ jsonrpc: "2.0", method, params }))) await once(response, "drain", { signal });
    },
    end(status, message) {
      clearInterval(keepalive);
      if (signal.aborted) return void response.end();
      if (response.headersSent) return void response.end(eventOf(message));
      const body = JSON.stringify(message);
      response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    },
  };
}

function eventOf(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
