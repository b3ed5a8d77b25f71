import type { DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Executor } from "../executor/executor.ts";
import type { Roots } from "../roots/roots.ts";

/** What a tool may use while it runs one call. */
export interface ToolContext {
  /** Aborted when the call is cancelled or its time is up. */
  signal: AbortSignal;
  /** The longest the call may take, in milliseconds: the caller's wish, cut to the tool's and the device's limits. */
  timeoutMs: number;
  /** Runs programs. The only way to start one. */
  executor: Executor;
  /** Which paths the manifest grants. */
  roots: Roots;
  /** Sends live output to whoever watches the call. */
  emit(stream: "stdout" | "stderr", chunk: Uint8Array): void;
}

/**
 * The implementation of one tool family: one function for each RPC of its service. The compiler names the one that
 * is missing. A function gets the validated input and returns the output; it throws `fault(...)` for what a caller
 * can act on.
 */
export type ToolFamily<S extends DescService> = {
  [M in keyof S["method"]]: (
    input: MessageShape<S["method"][M]["input"]>,
    context: ToolContext,
  ) => Promise<MessageInitShape<S["method"][M]["output"]>>;
};
