import { Code, type ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { invalidInput } from "../fault/invalid-input.ts";
import { locateJsonError } from "../json/locate.ts";
import type { Call } from "./call.ts";

const BINARY = "parse binary: ";
const MAX_MESSAGE = 300;

/** What connect says of a message with the flag of a compressed one, in a request that names no compression. */
const COMPRESSED = "received compressed envelope, but do not know how to decompress";

/**
 * The fault for what connect or protobuf-es found wrong with a request; undefined for any other error.
 * Connect reports binary that does not parse as Internal, which would blame the server.
 */
export function parseFault(error: ConnectError, call: Call): ConnectError | undefined {
  const text = error.rawMessage;
  switch (error.code) {
    case Code.Internal:
      if (text === COMPRESSED) return invalid("", "compression", "the message is compressed; send it as it is");
      if (!text.startsWith(BINARY)) return undefined;
      return depthFault(text) ?? invalid("", "protobuf", `not a valid message: ${text.slice(BINARY.length)}`);
    case Code.ResourceExhausted:
      return sizeFault(text);
    case Code.InvalidArgument:
      return depthFault(text) ?? timeoutFault(text, call) ?? jsonFault(text, call);
    default:
      return undefined;
  }
}

function depthFault(text: string): ConnectError | undefined {
  const limit = /maximum recursion depth(?: of (\d+))? reached/.exec(text);
  if (limit === null) return undefined;
  const metadata = { limit: limit[1] ?? "100", rule: "max_depth", field: "" };
  return fault(ErrorReason.INPUT_TOO_LARGE, metadata, { message: "the message is nested too deeply" });
}

function timeoutFault(text: string, call: Call): ConnectError | undefined {
  const field = call.protocol === "connect" ? "connect-timeout-ms" : "grpc-timeout";
  const limit = /^timeout [\d.]+ms must be <= (\d+)$/.exec(text)?.[1];
  if (limit !== undefined) return invalid(field, "max_timeout", `must be at most ${limit} milliseconds`);
  if (/^protocol error: invalid \S+ timeout value/.test(text)) return invalid(field, "syntax", "is no time limit");
  return undefined;
}

function sizeFault(text: string): ConnectError | undefined {
  const limit = /larger than configured readMaxBytes (\d+)/.exec(text);
  if (limit?.[1] === undefined) return undefined;
  const metadata = { limit: limit[1], rule: "max_bytes", field: "" };
  return fault(ErrorReason.INPUT_TOO_LARGE, metadata, { message: `the message is larger than ${limit[1]} bytes` });
}

function jsonFault(text: string, call: Call): ConnectError {
  const found = /^cannot decode (?:\S+ )+?from JSON:? (.*)$/s.exec(text);
  if (found?.[1] === undefined) return invalid("", "request", text);
  const message = found[1].startsWith("key ") ? "no such field" : found[1];
  const field = short(locateJsonError(call.method.input, call.body) ?? namedField(text));
  return invalid(field, found[1].startsWith("key ") ? "unknown_field" : "type", message);
}

/** The field's own name, where protobuf-es names one. */
function namedField(text: string): string {
  const name =
    /^cannot decode (?:field|oneof) (\S+) from JSON/.exec(text)?.[1] ?? /: key "([^"]*)" is unknown$/.exec(text)?.[1];
  return name?.split(".").at(-1) ?? "";
}

function invalid(field: string, rule: string, message: string): ConnectError {
  return invalidInput([{ field, rule, message: short(message) }]);
}

/** A caller's own text comes back in headers, so it must stay small. */
function short(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
}
