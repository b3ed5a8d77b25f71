import { create, type DescMethodUnary, type JsonObject, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { cleanOutput } from "../../../../lib/sanitize/sanitize.ts";
import { descriptorCodec } from "../../../../lib/tool/descriptor-codec.ts";
import type { ToolSpec } from "../../../../lib/tool/spec.ts";
import { throwIfAborted } from "../../tools/outcome.ts";
import { type DeviceTool, deviceTool } from "../../tools/tool.ts";

/** How much of a service's own words goes into an error, in characters. */
const MESSAGE_OUTPUT = 2048;

/**
 * The tool that calls an RPC of a service of the machine, with the call's deadline; it stops with the call. Faults:
 * CANCELED, TIMED_OUT, and TOOL_FAILED{service,code} with the service's own words, sanitized.
 */
export function rpcTool(spec: ToolSpec, method: DescMethodUnary, transport: Transport): DeviceTool {
  const tool = deviceTool(spec, descriptorCodec(method.input), async (input, context) => {
    const { signal, timeoutMs } = context;
    try {
      const { message } = await transport.unary(method, signal, timeoutMs, undefined, create(method.input, input));
      return toJson(method.output, message, { alwaysEmitImplicit: true }) as JsonObject;
    } catch (error: unknown) {
      throwIfAborted(context);
      throw failure(method, ConnectError.from(error), timeoutMs);
    }
  });
  return { ...tool, elsewhere: "none" };
}

function failure(method: DescMethodUnary, { code, rawMessage }: ConnectError, timeoutMs: number): Error {
  const service = method.parent.typeName;
  if (code === Code.DeadlineExceeded) {
    const message = `${service} took longer than ${timeoutMs} ms`;
    return fault(ErrorReason.TIMED_OUT, { timeout_ms: String(timeoutMs) }, { message });
  }
  const said = cleanOutput(rawMessage).text.trim().slice(0, MESSAGE_OUTPUT);
  const name = codeToString(code);
  const message = said === "" ? `${service} answered ${name}` : `${service} answered ${name}: ${said}`;
  return fault(ErrorReason.TOOL_FAILED, { service, code: name }, { message });
}
