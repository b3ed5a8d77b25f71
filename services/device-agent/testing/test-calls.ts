import { create, toBinary } from "@bufbuild/protobuf";
import {
  type ExecuteCommand,
  type ExecutionFinished,
  ExecutionFinishedSchema,
  ReconcileCommandSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { PingRequest } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { argumentBytes } from "./grants.ts";
import { createTestWatcher, type TestDevice } from "./test-executions.ts";
import { PING, testTool } from "./test-tools.ts";

export const PING_CALL = { tool: "device.ping", args: { text: "hello" }, callId: "call-1" } as const;

/** What a tool named device.ping must return. */
export function pong(text: string) {
  return { $typeName: "reeve.tools.v1.PingResponse", text };
}

/** device.ping as it is. */
export const ping = testTool(PING, async ({ text }: PingRequest) => pong(text));

/** A device.ping that notes its runs and ends when a test says so. */
export function createGate() {
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const runs: string[] = [];
  const tool = testTool(PING, async ({ text }: PingRequest) => {
    runs.push(text);
    started.resolve();
    await gate.promise;
    return pong("done");
  });
  return { tool, runs, started: started.promise, open: () => gate.resolve() };
}

/** Starts a call and waits for its end. */
export function run(device: TestDevice, start: ExecuteCommand): Promise<ExecutionFinished> {
  const watcher = createTestWatcher();
  device.executions.start(start, watcher);
  return watcher.end;
}

/** Reconciles a call with the tool and arguments of PING_CALL. */
export function reconcile(device: TestDevice, callId: string): Promise<ExecutionFinished> {
  const watcher = createTestWatcher();
  const argsDigest = sha256Hex(argumentBytes(PING_CALL));
  device.executions.reconcile(create(ReconcileCommandSchema, { callId, tool: PING_CALL.tool, argsDigest }), watcher);
  return watcher.end;
}

/** The bytes that the ledger keeps of an end. */
export function bytesOf(finished: ExecutionFinished): Buffer {
  return Buffer.from(toBinary(ExecutionFinishedSchema, finished));
}
