import { Code, ConnectError } from "@connectrpc/connect";
import type { NodeRequest } from "./adapter.ts";

/**
 * Reads a whole body, without the promises that an async iterator makes for each piece. Rejects with what `tooLarge` makes as soon
 * as it is clear that there is more than `maxBytes`; the rest is then read and forgotten, or the next request on the connection
 * would wait for it. Rejects as a departure where the caller leaves before the end.
 *
 * @param keep receives the pieces, as references.
 */
export function readWhole(
  request: NodeRequest,
  maxBytes: number,
  tooLarge: () => Error,
  keep: Uint8Array[] = [],
): Promise<Uint8Array> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  if (isGone(request)) return Promise.reject(departed());
  return new Promise((resolve, reject) => {
    let length = 0;
    const onData = (piece: Uint8Array): void => {
      length += piece.length;
      keep.push(piece);
      if (length <= maxBytes) return;
      keep.length = 0;
      request.off("data", onData).off("close", onClose).resume();
      reject(tooLarge());
    };
    const onEnd = (): void => {
      request.off("close", onClose);
      // A stream that was reset without an error ends like one whose body is whole.
      if (isReset(request)) reject(departed());
      else resolve(joined(keep, length));
    };
    const onClose = (): void => reject(departed());
    request.on("data", onData);
    request.once("end", onEnd);
    request.once("error", (cause: unknown) => reject(departed(cause)));
    request.once("close", onClose);
  });
}

/** True where the caller has left. */
export function isGone(request: NodeRequest): boolean {
  return request.errored !== null || ("stream" in request ? isReset(request) : request.socket.destroyed);
}

function isReset(request: NodeRequest): boolean {
  return "stream" in request && (request.stream.closed || request.stream.destroyed);
}

/** A copy, so that what is kept of a message does not keep the connection's buffers. */
function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** As connect says it; see `isDeparture`. */
function departed(cause?: unknown): Error {
  return new ConnectError("the caller left before the end of the request", Code.Aborted, undefined, undefined, cause);
}
