import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { errorOf, isRetryable } from "./errors.ts";

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
  return !isFinalCode(ConnectError.from(error).code);
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

/** Whether an error of this code stays: this caller, or this address, is the wrong one. */
export function isFinalCode(code: Code): boolean {
  return FINAL.has(code);
}
