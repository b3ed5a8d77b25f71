import { constants, type Http2ServerRequest, type ServerHttp2Stream } from "node:http2";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";

/** INPUT_TOO_LARGE for a body. */
export function bodyTooLarge(maxBytes: number): Error {
  const metadata = { limit: String(maxBytes), rule: "max_bytes", field: "" };
  return fault(ErrorReason.INPUT_TOO_LARGE, metadata, { message: `the body is larger than ${maxBytes} bytes` });
}

/**
 * The pieces of a body that may have `maxBytes` in all. Throws INPUT_TOO_LARGE before anything is read where the request
 * says that it has more, and otherwise with the piece that is one too many; calls `onTooLarge` before, when `body` is not
 * read any more.
 */
export async function* limitBody(
  body: AsyncIterable<Uint8Array>,
  { maxBytes, declared, onTooLarge }: { maxBytes: number; declared: string | undefined; onTooLarge: () => void },
): AsyncGenerator<Uint8Array> {
  let length = Number(declared ?? 0);
  if (length <= maxBytes) {
    length = 0;
    for await (const piece of body) {
      length += piece.length;
      if (length > maxBytes) break;
      yield piece;
    }
  }
  if (length <= maxBytes) return;
  onTooLarge();
  throw bodyTooLarge(maxBytes);
}

/** Ends HTTP/2 streams whose request does not end, as node does for HTTP/1.1. */
export interface BodyDeadline {
  /** The stream's request has the time of the deadline, from now on. */
  watch(request: Http2ServerRequest): void;
}

/** How often streams are looked at, in milliseconds: one look at all of them instead of a timer for each. */
const LOOK_MS = 1_000;

/** Streams whose request has not ended within `ms` are reset with CANCEL, within a second or two of that. */
export function createBodyDeadline(ms: number): BodyDeadline {
  const pending = new Map<ServerHttp2Stream, { request: Http2ServerRequest; until: number }>();
  let looking: NodeJS.Timeout | undefined;
  function forget(this: ServerHttp2Stream): void {
    pending.delete(this);
  }
  const look = (): void => {
    const now = performance.now();
    for (const [stream, { request, until }] of pending) {
      if (request.complete || stream.readableEnded) pending.delete(stream);
      else if (now > until) stream.close(constants.NGHTTP2_CANCEL);
    }
    if (pending.size > 0) return;
    clearInterval(looking);
    looking = undefined;
  };
  return {
    watch(request) {
      const { stream } = request;
      if (stream.endAfterHeaders || stream.destroyed) return;
      pending.set(stream, { request, until: performance.now() + ms });
      stream.once("close", forget);
      looking ??= setInterval(look, Math.min(LOOK_MS, ms)).unref();
    },
  };
}
