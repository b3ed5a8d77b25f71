import { isConnectionError } from "../server/connection-errors.ts";

/** How an error came that nothing in the process caught. */
export type UncaughtOrigin = "uncaughtException" | "unhandledRejection";

/** Where a guard listens, and what it ends. Most often `process`. */
export interface GuardedProcess {
  on(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
  off(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
  exit(code: number): void;
}

export interface GuardOptions {
  process: GuardedProcess;
  /** Called for each error of a connection; the process goes on. Must not throw. */
  onConnectionError(error: unknown): void;
  /** Called once, with the error that the process ends over. Must not throw. */
  onFatal(error: unknown, origin: UncaughtOrigin): void;
  /** How long what runs may take to close before the process ends, in milliseconds. Default 5000. */
  drainMs?: number;
}

/** Watches over a process. */
export interface ProcessGuard {
  /** What to close in an orderly way before the process ends. Until it is set, the process ends at once. */
  protect(running: { close(): Promise<void> }): void;
  /** Listens no more. */
  remove(): void;
}

/** The exit code after an error that nothing caught: EX_SOFTWARE. Supervisors restart on any code but 0. */
export const FATAL_EXIT_CODE = 70;

const DRAIN_MS = 5_000;

/**
 * Decides what becomes of errors that nothing caught. One of a connection is reported, and the process goes on; anything
 * else is reported, then what runs is closed for `drainMs` at most and the process ends with FATAL_EXIT_CODE, because what
 * was under way when it was thrown has stopped half-way, and nothing says what it held.
 */
export function guardProcess(options: GuardOptions): ProcessGuard {
  const { process, onConnectionError, onFatal, drainMs = DRAIN_MS } = options;
  let running: { close(): Promise<void> } | undefined;
  let isEnding = false;
  const end = (error: unknown, origin: UncaughtOrigin): void => {
    isEnding = true;
    onFatal(error, origin);
    const exit = (): void => process.exit(FATAL_EXIT_CODE);
    setTimeout(exit, running === undefined ? 0 : drainMs);
    running?.close().then(exit, exit);
  };
  const onError = (error: unknown, origin: UncaughtOrigin): void => {
    if (isHarmless(error, origin)) onConnectionError(error);
    // What fails while the process ends is a consequence, or is reported by what closes it.
    else if (!isEnding) end(error, origin);
  };
  const onException = (error: unknown): void => onError(error, "uncaughtException");
  const onRejection = (error: unknown): void => onError(error, "unhandledRejection");
  process.on("uncaughtException", onException);
  process.on("unhandledRejection", onRejection);
  return {
    protect(service) {
      running = service;
    },
    remove() {
      process.off("uncaughtException", onException);
      process.off("unhandledRejection", onRejection);
    },
  };
}

/** What node says where a peer hung up, fell silent, or spoke HTTP or TLS wrongly. */
const PEER_CODES =
  /^(ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTCONN|EPROTO|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_(STREAM_ERROR|SESSION_ERROR|ERROR|STREAM_CANCEL|GOAWAY_SESSION|PING_CANCEL)|ERR_SSL_\w+|ERR_TLS_HANDSHAKE_TIMEOUT|HPE_\w+)$/;

/**
 * True where going on is safe: the error is marked as one of a caller's connection, or node itself made it for an "error"
 * event of a connection that has no listener, so that no code of the program was interrupted and whatever waits on the
 * connection fails by itself. A rejection that is not marked is never harmless, whatever its code: what rejected was code of
 * the program, such as a loop that renews a lease over a connection, and it has stopped for good.
 */
export function isHarmless(error: unknown, origin: UncaughtOrigin): boolean {
  if (isConnectionError(error)) return true;
  if (origin === "unhandledRejection" || !(error instanceof Error) || !("code" in error)) return false;
  return PEER_CODES.test(String(error.code)) && isMadeByNode(error);
}

/** True where every frame of the stack is in node. */
function isMadeByNode({ stack = "" }: Error): boolean {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames.every((frame) => /\(?node:|<anonymous>/.test(frame));
}
