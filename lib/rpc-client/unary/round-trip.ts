import {
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { getAbortSignalReason } from "@connectrpc/connect/protocol";
import { errorOfNode, errorOfReset } from "./stream-errors.ts";

/** Opens streams on a connection that it makes where it has to; an `Http2SessionManager` does. */
export interface Streams {
  request(
    method: "POST",
    path: string,
    headers: OutgoingHttpHeaders,
    options: ClientSessionRequestOptions,
  ): Promise<ClientHttp2Stream>;
}

/** A request over HTTP/2, whole. */
export interface RoundTrip {
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Bytes of the answer. */
  maxBytes: number;
  signal: AbortSignal | undefined;
  timeoutMs: number | undefined;
}

/** An answer, whole. */
export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Uint8Array;
}

/**
 * Sends a request and collects its answer. Rejects with a ConnectError where the signal is aborted, the time is over, or the
 * connection fails; the stream is then reset.
 */
export function roundTrip(streams: Streams, request: RoundTrip): Promise<Answer> {
  const { path, headers, body, maxBytes, signal, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    let stream: ClientHttp2Stream | undefined;
    let timer: NodeJS.Timeout | undefined;
    let isDone = false;
    const done = (): void => {
      isDone = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    const fail = (error: ConnectError): void => {
      if (isDone) return;
      done();
      // With NO_ERROR a server would take what has come of the request for all of it.
      stream?.close(constants.NGHTTP2_CANCEL);
      reject(error);
    };
    const onAbort = (): void =>
      fail(ConnectError.from(signal === undefined ? undefined : getAbortSignalReason(signal), Code.Canceled));
    const onTimeout = (): void => fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    const onStream = (opened: ClientHttp2Stream): void => {
      stream = opened;
      opened.on("error", (cause) => fail(errorOfNode(cause)));
      if (isDone) {
        opened.close(constants.NGHTTP2_CANCEL);
        return;
      }
      collect(opened, maxBytes, fail, (answer) => {
        if (isDone) return;
        done();
        resolve(answer);
      });
      opened.end(body);
    };
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener("abort", onAbort);
    if (timeoutMs !== undefined) timer = setTimeout(onTimeout, timeoutMs);
    streams.request("POST", path, headers, {}).then(onStream, (cause) => fail(errorOfNode(cause)));
  });
}

function collect(
  stream: ClientHttp2Stream,
  maxBytes: number,
  fail: (error: ConnectError) => void,
  succeed: (answer: Answer) => void,
): void {
  let headers: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
  const pieces: Uint8Array[] = [];
  let length = 0;
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("data", (piece: Uint8Array) => {
    length += piece.length;
    pieces.push(piece);
    if (length > maxBytes) fail(answerTooLarge(maxBytes));
  });
  stream.on("end", () => {
    const promised = headers["content-length"];
    // A stream that is reset without an error ends like one whose body is whole.
    if (headers[":status"] === undefined || (promised !== undefined && Number(promised) !== length)) return;
    const [first] = pieces;
    succeed({
      status: headers[":status"],
      headers,
      body: pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length),
    });
  });
  stream.on("close", () => fail(errorOfReset(stream.rstCode)));
}

function answerTooLarge(maxBytes: number): ConnectError {
  return new ConnectError(`message size is larger than configured readMaxBytes ${maxBytes}`, Code.ResourceExhausted);
}
