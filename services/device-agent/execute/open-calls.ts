import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { NewExecution } from "../ledger/ledger.ts";
import type { Outputs } from "../output/outputs.ts";
import { createLiveOutput, type LiveOutput } from "./live-output.ts";
import type { Stop } from "./stop.ts";
import type { Watcher } from "./watcher.ts";

/** A call whose end is not known yet. */
export interface OpenCall {
  readonly execution: NewExecution;
  /** Undefined where there is nothing to stop: the call only waits for the ledger. */
  readonly stop: Stop | undefined;
  readonly watchers: Set<Watcher>;
}

/** The calls whose ends are not known yet, at most one for each call id. */
export interface OpenCalls {
  find(callId: string): OpenCall | undefined;
  /** All of them, in the order in which they came. */
  all(): Iterable<OpenCall>;
  /** Keeps a call open until `run` resolves, then reports the end to every watcher it has by then. */
  track(
    execution: NewExecution,
    stop: Stop | undefined,
    watcher: Watcher,
    run: (live: LiveOutput) => Promise<ExecutionFinished>,
  ): void;
  /** Forgets a watcher that has left. */
  leave(watcher: Watcher): void;
  readonly size: number;
  /** Stops all calls and resolves when none is open. */
  shutDown(): Promise<void>;
}

/** @param onLost receives why a call got no answer. */
export function createOpenCalls(
  outputs: Pick<Outputs, "record">,
  onLost: (callId: string, error: unknown) => void,
): OpenCalls {
  const open = new Map<string, OpenCall>();
  let idle: (() => void) | undefined;

  const close = (call: OpenCall, live: LiveOutput, notify: (watcher: Watcher) => void): void => {
    call.stop?.release();
    live.end();
    open.delete(call.execution.callId);
    for (const watcher of call.watchers) notify(watcher);
    if (open.size === 0) idle?.();
  };

  return {
    find: (callId) => open.get(callId),
    all: () => open.values(),
    track(execution, stop, watcher, run) {
      const call: OpenCall = { execution, stop, watchers: new Set([watcher]) };
      const live = createLiveOutput(execution.callId, call.watchers, outputs);
      open.set(execution.callId, call);
      run(live).then(
        (finished) => close(call, live, (one) => one.finished(finished)),
        (error: unknown) => {
          onLost(execution.callId, error);
          const lost = internalFault(execution.callId, error);
          close(call, live, (one) => one.lost(execution.callId, lost));
        },
      );
    },
    leave(watcher) {
      for (const call of open.values()) call.watchers.delete(watcher);
    },
    get size() {
      return open.size;
    },
    async shutDown() {
      for (const call of open.values()) call.stop?.stop("shutdown");
      if (open.size === 0) return;
      await new Promise<void>((resolve) => {
        idle = resolve;
      });
    },
  };
}

/** The fault for a call that got no answer; the cause is in the log under the call's id. */
export function internalFault(callId: string, cause: unknown): ConnectError {
  const message = `internal error on the device; call id ${callId}`;
  return fault(ErrorReason.INTERNAL, { request_id: callId }, { message, cause });
}
