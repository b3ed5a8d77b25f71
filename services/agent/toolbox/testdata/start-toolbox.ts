import type { JsonObject } from "@bufbuild/protobuf";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createRegistryToolbox, type RegistryToolboxOptions } from "../registry-toolbox.ts";
import type { CallReport } from "../toolbox.ts";
import type { Toolset, ToolsetTool } from "../toolset.ts";
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
export function start(behavior: Behavior, more: Partial<RegistryToolboxOptions> = {}) {
  const { client, calls } = inMemoryRegistry(behavior);
  const toolbox = createRegistryToolbox({ client, toolset: toolset(), runId: "run-1", retryDelaysMs: [1, 1], ...more });
  const reports: CallReport[] = [];
  const abort = new AbortController();
  const call = (input: JsonObject = { argv: ["true"] }, name = "exec", onEvent?: (report: CallReport) => void) =>
    toolbox.call({
      id: "toolu_1",
      name,
      input,
      signal: abort.signal,
      onEvent: (report) => {
        reports.push(report);
        onEvent?.(report);
      },
    });
  return { call, calls, reports, abort };
}

/** Ends a call well. */
export const succeed = (stream: Stream, output: JsonObject = { stdout: "ok" }) =>
  stream.emit(CallState.SUCCEEDED, { output });

/** What a registry says of a call that waits for a human. */
export const held = ({ callId }: { callId: string }) => ({
  call: { id: callId, status: { state: CallState.HELD, approval: { id: "apr-7" } } },
});
