import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { tool as toolOption } from "../../../gen/ts/reeve/tool/v1/options_pb.ts";
import { Device } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { Shell } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import type { ToolEntry } from "../tools/index.ts";

/** A tool with the name, input and output of a built-in one, and a behaviour of the test's own. */
export function testTool(method: DescMethodUnary, run: (input: never, context: never) => Promise<unknown>): ToolEntry {
  const options = getOption(method, toolOption);
  return {
    name: options.name,
    capability: options.capability,
    options,
    method,
    id: `${method.parent.typeName}/${method.name}`,
    input: method.input,
    output: method.output,
    timeoutMs: (input: Message & { timeoutMs?: number }) => input.timeoutMs || 60_000,
    run: run as ToolEntry["run"],
    probe: () => Promise.resolve(undefined),
  };
}

/** The RPC of device.ping. */
export const PING = Device.method.ping;
/** The RPC of exec. */
export const EXEC = Shell.method.exec;
/** The RPC of shell.eval. */
export const EVAL = Shell.method.eval;
