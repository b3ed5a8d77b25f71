import type { CallRequest } from "../../../client/call-stream.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type RoutedInput, takeDevice } from "../../../lib/model-tools/device-parameter.ts";
import { type ErrorFacts, errorText, thrownFacts } from "../../../lib/model-tools/error-text.ts";
import type { Toolset, ToolsetTool } from "../toolset/toolset.ts";
import type { ToolCall, ToolResult } from "./toolbox.ts";

/** A call as the registry gets it. */
export interface PreparedCall {
  request: CallRequest;
  /** Whose data comes back, such as `device "laptop"`. */
  from: string;
}

/** The call that a use of a tool stands for, of the tools and devices of the toolset only; or why there is none. */
export function prepareCall(toolset: Toolset, call: ToolCall, purpose: string): PreparedCall | { refused: ToolResult } {
  const tool = toolset.tools.find((one) => one.name === call.name);
  if (tool === undefined) return { refused: refusedResult(unknownTool(call.name, toolset)) };
  try {
    const { deviceId, input } = route(toolset, tool, call);
    const device = tool.devices.find((one) => one.id === deviceId)?.name ?? deviceId;
    return {
      request: {
        device: deviceId,
        tool: tool.name,
        params: input,
        callId: call.callId,
        purpose: purpose.slice(0, 1000),
        client: "agent",
      },
      from: `device ${JSON.stringify(device)}`,
    };
  } catch (thrown: unknown) {
    return { refused: refusedResult(thrownFacts(thrown)) };
  }
}

/** The result of a call that was never sent. */
export function refusedResult(error: ErrorFacts): ToolResult {
  return { content: errorText(error, "the registry"), isError: true };
}

function route({ devices }: Toolset, tool: ToolsetTool, call: ToolCall): RoutedInput {
  const [only] = tool.devices;
  if (devices.length === 1 && only !== undefined) return { deviceId: only.id, input: call.input };
  return takeDevice(tool.ownSchema, tool.devices, call.input);
}

function unknownTool(tool: string, { tools }: Toolset): ErrorFacts {
  const available = tools.map(({ name }) => name).join(", ");
  return { reason: ErrorReason.UNKNOWN_TOOL, message: `no tool ${JSON.stringify(tool)}`, metadata: { available } };
}
