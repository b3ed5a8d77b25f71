import type { ConnectError } from "@connectrpc/connect";
import type { ExecutionFinished, ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** Someone who asked for calls and hears of them until their ends. */
export interface Watcher {
  /** Something the tool printed. All of it comes before the end. */
  output(output: ExecutionOutput): void;
  /** Resolves when more output may be sent. */
  room(): Promise<void>;
  /** The call's end. */
  finished(finished: ExecutionFinished): void;
  /** There will be no answer: the ledger could not be written, or the agent is closing. Ask again later. */
  lost(callId: string, error: ConnectError): void;
}
