import { create, type DescMethodUnary, getOption, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { tool as toolOption } from "../../../gen/ts/reeve/tool/v1/options_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { cleanOutput } from "../../../lib/sanitise/sanitise.ts";
import type { AnnouncedTool } from "../../../lib/toolschema/announced.ts";
import { type ToolEntry, timeoutWishOf } from "../tools/index.ts";
import { throwIfAborted } from "../tools/outcome.ts";
import type { ToolContext } from "../tools/tool.ts";

/** How much of a service's own words goes into an error, in characters. */
const MESSAGE_OUTPUT = 2048;

/** The tool that calls an announced RPC, like a built-in one. */
export function announcedEntry({ tool, method }: AnnouncedTool, transport: Transport): ToolEntry {
  return {
    name: tool.name,
    capability: tool.capability,
    options: getOption(method, toolOption),
    method,
    id: tool.method,
    input: method.input,
    output: method.output,
    timeoutMs: (input) => timeoutWishOf(input) || tool.defaultTimeoutMs,
    run: (input, context) => callService(method, transport, input, context),
    probe: () => Promise.resolve(undefined),
  };
}

/**
 * Calls a service of the machine with the call's deadline, and stops with the call. Faults: CANCELLED, TIMED_OUT, and
 * TOOL_FAILED{service,code} with the service's own words, cleaned.
 */
async function callService(
  method: DescMethodUnary,
  transport: Transport,
  input: Message,
  context: ToolContext,
): Promise<Message> {
  try {
    const { signal, timeoutMs } = context;
    const { message } = await transport.unary(method, signal, timeoutMs, undefined, create(method.input, input));
    return message;
  } catch (error: unknown) {
    throwIfAborted(context);
    throw failure(method, ConnectError.from(error), context.timeoutMs);
  }
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
