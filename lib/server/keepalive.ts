import type { ServerHttp2Session } from "node:http2";
import type { Limits } from "./limits.ts";

/**
 * Watches one HTTP/2 connection. A peer that is gone without a word (a pulled cable, a frozen process) does not answer a
 * ping and is cut off, which aborts its handlers; one that has had no stream for long gets a GOAWAY.
 */
export function keepAlive(session: ServerHttp2Session, limits: Limits): void {
  let streams = 0;
  let idleSince = performance.now();
  session.on("stream", (stream) => {
    streams++;
    stream.once("close", () => {
      streams--;
      idleSince = performance.now();
    });
  });
  const timer = setInterval(() => {
    if (streams === 0 && performance.now() - idleSince > limits.idleSessionMs) session.close();
    else ping(session, limits.pingTimeoutMs);
  }, limits.pingIntervalMs);
  timer.unref();
  session.once("close", () => clearInterval(timer));
}

function ping(session: ServerHttp2Session, timeoutMs: number): void {
  if (session.closed || session.destroyed) return;
  const timer = setTimeout(() => session.destroy(), timeoutMs);
  timer.unref();
  // The callback comes with an error where the session ends first; either way it is no longer ours to end.
  session.ping(() => clearTimeout(timer));
}
