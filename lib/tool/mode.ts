import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { ToolScope } from "./spec.ts";

/**
 * True where a device in that mode offers tools of that scope: user offers "user" and "any", sudo offers "sudo" and "any",
 * all offers everything. A mode that is not stated counts as the stricter one, user.
 */
export function isInMode(mode: Mode, scope: ToolScope): boolean {
  if (mode === Mode.ALL || scope === "any") return true;
  return scope === (mode === Mode.SUDO ? "sudo" : "user");
}
