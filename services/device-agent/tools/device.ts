import type { DeviceTools } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import type { ToolFamily } from "./tool.ts";

/** The tools of the device itself. */
export const deviceTools: ToolFamily<typeof DeviceTools> = {
  ping: async ({ text }) => ({ text }),
};
