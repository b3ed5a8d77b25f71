import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Cut, ScriptedTurn } from "./script.ts";
import type { StreamPart } from "./wire-format.ts";

/** Sends a streamed answer, to its end or to where the script cuts it. */
export async function sendStream(
  response: ServerResponse,
  parts: Iterable<StreamPart>,
  script: ScriptedTurn,
  breaks: boolean,
): Promise<void> {
  const closed = new AbortController();
  response.on("close", () => closed.abort());
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  const cut = script.cut?.();
  if (cut !== undefined) return sendCut(response, parts, cut);
  if (script.trickles) return trickle(response, parts);
  for (const { text, isContent, isEnd } of parts) {
    if (closed.signal.aborted) return;
    if (breaks && isContent) return interrupt(response, ": \n\n");
    if (isEnd) await script.linger?.(closed.signal);
    if (!response.write(text) && !closed.signal.aborted) await drained(response, closed.signal);
  }
  response.end();
}

/** Sends a byte at a time, and each with a chunk of its own. */
async function trickle(response: ServerResponse, parts: Iterable<StreamPart>): Promise<void> {
  for (const byte of bodyOf(parts)) {
    response.write(Buffer.of(byte));
    await setImmediate();
  }
  response.end();
}

function sendCut(response: ServerResponse, parts: Iterable<StreamPart>, { bytes, clean }: Cut): void {
  const body = bodyOf(parts).subarray(0, bytes);
  if (clean) response.end(body);
  else interrupt(response, body);
}

function bodyOf(parts: Iterable<StreamPart>): Buffer {
  return Buffer.from([...parts].map((part) => part.text).join(""));
}

/** Interrupts a stream after what is written, which would be lost with the connection if it were still waiting. */
function interrupt(response: ServerResponse, last: string | Buffer): void {
  response.write(last, () => response.destroy());
}

async function drained(response: ServerResponse, closed: AbortSignal): Promise<void> {
  await once(response, "drain", { signal: closed }).catch(() => undefined);
}
