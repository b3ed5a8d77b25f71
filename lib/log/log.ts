import { ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { type DestinationStream, destination, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import { faultDetail, reasonName } from "../fault/fault.ts";
import { REDACTED, redactSecrets, secretNames } from "./redact.ts";

export type { Logger } from "pino";

/** How much can be written: each level and all above it; "silent" writes nothing. */
export const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

/** How much is written. */
export type Level = (typeof LEVELS)[number];

export interface LoggerOptions {
  /** Bound to every line as `service`. */
  service: string;
  /** Default "info". */
  level?: Level;
  /** Where the lines go. Default: standard error, written without waiting and flushed on exit. */
  destination?: DestinationStream;
}

/** One JSON object a line, with an ISO 8601 time. The value of a field that is named like a secret is never written. */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level ?? "info",
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      // Not pino's own redact: it copies every line, five microseconds each.
      formatters: { level: (label) => ({ level: label }), log: redactSecrets },
      // What a child logger binds goes through serializers only.
      serializers: { err: serializeError, ...Object.fromEntries(secretNames.map((name) => [name, () => REDACTED])) },
    },
    options.destination ?? destination({ fd: 2, sync: false }),
  );
}

/** The most characters of a message; a caller's own text may be part of it. */
const MAX_MESSAGE = 1000;

/**
 * An error as a log line shows it. A fault is its sentence, code, reason and metadata: it says what is wrong, and where it
 * was thrown says nothing more. Any other error has its stack. Never the encoded details of an error, nor its headers.
 */
function serializeError(error: unknown): unknown {
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
