import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino";
import { REDACTED, redactSecrets, secretNames } from "./redact.ts";
import { serializeError } from "./serialize-error.ts";

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
