import { create, type DescMethodUnary, getOption, type JsonObject, toJson } from "@bufbuild/protobuf";
import { tool as toolOption } from "../../../gen/ts/reeve/options/v1/tool_pb.ts";
import { DeviceTools } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { Shell } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { descriptorCodec } from "../../../lib/tool/descriptor-codec.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { type DeviceTool, deviceTool } from "../tools/tool.ts";

/** A tool with the contract of a built-in one, and a behavior of the test's own. */
export function testTool(method: DescMethodUnary, run: (input: never, context: never) => Promise<unknown>): DeviceTool {
  const spec = toolByName(getOption(method, toolOption).name);
  if (spec === undefined) throw new Error(`${method.name} is no built-in tool`);
  return deviceTool(spec, descriptorCodec(method.input), async (input, context) => {
    const output = (await run(input as never, context as never)) as Record<string, unknown>;
    return toJson(method.output, create(method.output, output), { alwaysEmitImplicit: true }) as JsonObject;
  });
}

/** The RPC of device.ping. */
export const PING = DeviceTools.method.ping;
/** The RPC of exec. */
export const EXEC = Shell.method.exec;
/** The RPC of shell.eval. */
export const EVAL = Shell.method.eval;
