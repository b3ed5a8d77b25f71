import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Scope, type ToolOptions } from "../../../gen/ts/reeve/tool/v1/options_pb.ts";

/**
 * True where a device in that mode offers tools of that scope: user offers USER and ANY, sudo offers SUDO and ANY, all
 * offers everything. What is not stated counts as the stricter one: the scope as SUDO, the mode as user.
 */
export function isInMode(mode: Mode, scope: ToolOptions["scope"]): boolean {
  if (mode === Mode.ALL || scope === Scope.ANY) return true;
  return mode === Mode.SUDO ? scope !== Scope.USER : scope === Scope.USER;
}
