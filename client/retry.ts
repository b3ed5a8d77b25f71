import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { errorOf, isRetryable, reasonOf } from "./errors.ts";

/** The pauses before each new try after a connection broke, in milliseconds: 20 seconds in all. */
export const RETRY_DELAYS_MS: readonly number[] = [200, 400, 800, 1600, 3000, 4000, 5000, 5000];

const FINAL: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

/**
 * Whether connecting again may help. A broken transport may end with any code; only a refusal that says why, or one that
 * cannot change, is final.
 */
export function mayReconnect(error: unknown): boolean {
  if (errorOf(error).reason !== ErrorReason.UNSPECIFIED) return isRetryable(error);
  return !FINAL.has(ConnectError.from(error).code);
}

/** How a stream is watched over restarts of its service. */
export interface WatchOptions {
  /** Aborting it ends the watch, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The connection is lost, with why; undefined where the service closed it. Once for each time. */
  onLost?: (error: unknown) => void;
  /** The connection is back, and what happened meanwhile comes next. */
  onBack?: () => void;
  /** Whether trying again is useless. Default: where this caller, this address, or what it asks for is the wrong one. */
  isFinal?: (error: unknown) => boolean;
}

/** The first pause before connecting again and the longest one, in milliseconds; each is twice the one before. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;

/**
 * What a stream yields, opened again whenever it ends, over restarts of its service. Rejects where it cannot be opened at
 * the beginning, since a caller who has just given an address wants to know that it is wrong, and with any error that is
 * final.
 *
 * @param open reaches the service, then returns the stream.
 */
export async function* reopened<T>(
  open: () => Promise<AsyncIterable<T>>,
  { signal, onLost, onBack, isFinal = isFinalError }: WatchOptions,
): AsyncGenerator<T, never, void> {
  const giveUp = (error: unknown): void => {
    signal?.throwIfAborted();
    if (isFinal(error)) throw error;
  };
  for (let stream = await open(); ; ) {
    let lost: unknown;
    try {
      yield* stream;
    } catch (error: unknown) {
      giveUp(error);
      lost = error;
    }
    onLost?.(lost);
    let next: AsyncIterable<T> | undefined;
    for (let failures = 0; next === undefined; failures++) {
      await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2), signal);
      signal?.throwIfAborted();
      next = await open().catch((error: unknown) => {
        giveUp(error);
        return undefined;
      });
    }
    onBack?.();
    stream = next;
  }
}

/** Resolves after the time, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Whether an error stays: this caller, this address, or what it asks for is the wrong one. */
export function isFinalError(error: unknown): boolean {
  return !(error instanceof ConnectError) || FINAL.has(error.code) || reasonOf(error) === ErrorReason.NOT_FOUND;
}
