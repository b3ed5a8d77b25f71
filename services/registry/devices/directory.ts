import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { OfferedTool } from "../tools/offered.ts";
import type { KnownDevice } from "./linked-device.ts";

/** The devices by name and id. */
export interface Directory {
  /** Adds a device or replaces what was known of it. */
  put(device: KnownDevice): void;
  /** The device that a caller means. */
  resolve(wanted: string): KnownDevice;
  /** The device with this id. */
  byId(id: string): KnownDevice | undefined;
  /** All devices, by name. */
  all(): KnownDevice[];
}

/**
 * @param localName the device that "this" means: the one on the control plane's own machine, if there is one.
 */
export function createDirectory(localName: string | undefined): Directory {
  const byName = new Map<string, KnownDevice>();
  const ids = new Map<string, KnownDevice>();
  const names = () => [...byName.keys()].sort().join(", ");
  return {
    put(device) {
      byName.set(device.name, device);
      ids.set(device.id, device);
    },
    resolve(wanted) {
      if (wanted === "") return onlyOne([...byName.values()], names());
      const name = wanted === "this" && localName !== undefined ? localName : wanted;
      const device = byName.get(name) ?? ids.get(name);
      if (device !== undefined) return device;
      throw fault(
        ErrorReason.UNKNOWN_DEVICE,
        { device: wanted, available: names() },
        { message: `no device "${printable(wanted)}"; there is: ${names() || "none yet"}` },
      );
    },
    byId: (id) => ids.get(id),
    all: () => [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function onlyOne(devices: KnownDevice[], names: string): KnownDevice {
  const [first, second] = devices;
  if (first !== undefined && second === undefined) return first;
  if (first === undefined) {
    throw fault(ErrorReason.UNKNOWN_DEVICE, { device: "", available: "" }, { message: "no device is known yet" });
  }
  throw fault(
    ErrorReason.DEVICE_REQUIRED,
    { available: names, field: "device" },
    { message: `say which device: ${names}` },
  );
}

/** The tool that a caller means on a device. */
export function resolveTool(device: KnownDevice, name: string): OfferedTool {
  const tool = device.tools.get(name);
  if (tool !== undefined) return tool;
  const available = [...device.tools.keys()].sort().join(", ");
  const unavailable = device.manifest.unavailable.find((one) => one.tool === name);
  if (unavailable !== undefined) {
    throw fault(
      ErrorReason.NOT_AVAILABLE,
      { tool: name, program: unavailable.why },
      { message: `${name} is not available on ${device.name}: ${unavailable.why}` },
    );
  }
  throw fault(
    ErrorReason.UNKNOWN_TOOL,
    { tool: printable(name), available },
    { message: `no tool "${printable(name)}" on ${device.name}; there is: ${available}` },
  );
}

/** A name from a caller, safe to show. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 128);
}
