import { ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { stdSerializers } from "pino";
import { faultDetail, reasonName } from "../fault/fault.ts";
import { redactSecrets } from "./redact.ts";

/** The most characters of a message; a caller's own text may be part of it. */
const MAX_MESSAGE = 1000;

/**
 * An error as a log line shows it. A fault is its sentence, code, reason and metadata: it says what is wrong, and where it
 * was thrown says nothing more. Any other error has its stack. Never the encoded details of an error, nor its headers.
 */
export function serializeError(error: unknown): unknown {
  if (error instanceof ConnectError) return serializeConnectError(error);
  if (error instanceof AggregateError) {
    return { ...stdSerializers.err(error), aggregateErrors: error.errors.map(serializeError) };
  }
  return error instanceof Error ? stdSerializers.err(error) : error;
}

function serializeConnectError(error: ConnectError): unknown {
  const detail = faultDetail(error);
  const said = { type: "ConnectError", message: short(error.rawMessage), code: codeToString(error.code) };
  if (detail === undefined) return { ...said, stack: stdSerializers.err(error).stack };
  const { cause } = error;
  return {
    ...said,
    reason: reasonName(detail.reason),
    metadata: redactSecrets({ ...detail.metadata }),
    ...(cause === undefined ? {} : { cause: serializeError(cause) }),
  };
}

function short(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
}
