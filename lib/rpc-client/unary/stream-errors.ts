import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

/** What connect-node says for node's errors; those that it does not know are internal. */
const CODES = new Map<string, Code>([
  ["ERR_STREAM_DESTROYED", Code.Aborted],
  ["ERR_HTTP2_INVALID_STREAM", Code.Aborted],
  ["ECONNRESET", Code.Aborted],
  ["ETIMEDOUT", Code.Unavailable],
  ["ENOTFOUND", Code.Unavailable],
  ["EAI_AGAIN", Code.Unavailable],
  ["ECONNREFUSED", Code.Unavailable],
]);

/** The error of a call whose connection or stream failed: the same as connect-node's own client gives it. */
export function errorOfNode(cause: unknown): ConnectError {
  if (cause instanceof ConnectError) return cause;
  const error = ConnectError.from(cause, CODES.get(codeIn(cause)) ?? Code.Internal);
  error.cause = cause;
  return error;
}

/** The first known code of an error and its causes. */
function codeIn(error: unknown): string {
  for (let at = error, left = 10; at instanceof Error && left > 0; at = at.cause, left--) {
    if ("code" in at && typeof at.code === "string" && CODES.has(at.code)) return at.code;
  }
  return "";
}

/** By the code that a stream was reset with, as gRPC maps them (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors). */
const RESETS = new Map<number, [name: string, code: Code]>([
  [constants.NGHTTP2_REFUSED_STREAM, ["REFUSED_STREAM", Code.Unavailable]],
  [constants.NGHTTP2_CANCEL, ["CANCEL", Code.Canceled]],
  [constants.NGHTTP2_ENHANCE_YOUR_CALM, ["ENHANCE_YOUR_CALM", Code.ResourceExhausted]],
  [constants.NGHTTP2_INADEQUATE_SECURITY, ["INADEQUATE_SECURITY", Code.PermissionDenied]],
  [constants.NGHTTP2_HTTP_1_1_REQUIRED, ["HTTP_1_1_REQUIRED", Code.PermissionDenied]],
]);

/** The error of a call whose stream closed before the end of its answer, and no other error said why. */
export function errorOfReset(rstCode: number): ConnectError {
  const [name, code] = RESETS.get(rstCode) ?? ["", Code.Aborted];
  if (name === "") return new ConnectError("the stream closed before the end of the answer", code);
  return new ConnectError(`http/2 stream closed with error code ${name} (0x${rstCode.toString(16)})`, code);
}
