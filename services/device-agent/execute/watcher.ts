import type { ConnectError } from "@connectrpc/connect";
import type { ExecutionFinished, ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** A party that asked for calls and is notified of them until their ends. */
export interface Watcher {
  /** Whether the output of a call is to be sent as it comes. */
  follows(callId: string): boolean;
  /** Something the tool printed. All of it comes before the end. */
  output(output: ExecutionOutput): void;
  /** Undefined where more output of a call may be sent; otherwise resolves when it may, or when it is not followed any more. */
  room(callId: string): Promise<void> | undefined;
  /** The call's end. */
  finished(finished: ExecutionFinished): void;
  /** There will be no answer: the ledger could not be written, or the agent is closing. Ask again later. */
  lost(callId: string, error: ConnectError): void;
}
