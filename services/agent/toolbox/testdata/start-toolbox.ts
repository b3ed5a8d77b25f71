import type { JsonObject } from "@bufbuild/protobuf";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { callIdOf } from "../../run-input/call-id.ts";
import type { Toolset, ToolsetTool } from "../../toolset/toolset.ts";
import { createRegistryCaller, type RegistryCallerOptions } from "../registry-caller.ts";
import type { CallReport } from "../toolbox.ts";
import { type Behavior, inMemoryRegistry, type Stream } from "./in-memory-registry.ts";

/** A device. */
export const laptop = { id: "dev-1", name: "laptop" };
/** Another device. */
export const server = { id: "dev-2", name: "server" };

/** A toolset with exec on the given devices. */
export function toolset(devices = [laptop]): Toolset {
  const schema: JsonObject = { type: "object", properties: { argv: { type: "array" } } };
  const exec: ToolsetTool = {
    name: "exec",
    description: "Run. [device_mesh: shell.exec]",
    capability: "shell.exec",
    requiresApproval: false,
    inputSchema: schema,
    ownSchema: schema,
    devices,
  };
  return { devices, tools: [exec], warnings: [] };
}

/** A toolbox over a registry that does what a test says, and what is seen of it. */
export function start(behavior: Behavior, more: Partial<RegistryCallerOptions> = {}) {
  const { client, calls } = inMemoryRegistry(behavior);
  const toolbox = createRegistryCaller({ client, toolset: toolset(), retryDelaysMs: [1, 1], ...more });
  const reports: CallReport[] = [];
  const abort = new AbortController();
  const call = (input: JsonObject = { argv: ["true"] }, name = "exec", onEvent?: (report: CallReport) => void) =>
    toolbox.call(
      {
        id: "toolu_1",
        callId: callIdOf("run-1", "toolu_1"),
        name,
        input,
        onEvent: (report) => {
          reports.push(report);
          onEvent?.(report);
        },
      },
      abort.signal,
    );
  return { call, calls, reports, abort };
}

/** Ends a call well. */
export const succeed = (stream: Stream, output: JsonObject = { stdout: "ok" }) =>
  stream.emit(CallState.SUCCEEDED, { output });

/** What a registry says of a call that waits for a human. */
export const held = ({ callId }: { callId: string }) => ({
  call: { id: callId, status: { state: CallState.HELD, approval: { id: "apr-7" } } },
});
