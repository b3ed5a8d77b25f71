import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { OfferedTool } from "../tools/offered.ts";
import type { KnownDevice } from "./known-device.ts";

/** The devices that this replica knows, by name and id. */
export interface DeviceIndex {
  /** Adds a device or replaces what was known of it. */
  put(device: KnownDevice): void;
  /** Forgets the device of a name. */
  remove(name: string): void;
  /** The device that a caller means, as far as this replica knows. UNKNOWN_DEVICE or DEVICE_REQUIRED where there is none. */
  resolve(wanted: string): KnownDevice;
  /** The device that a caller means, where it is known here and linked: the usual case, without a wait or a fault. */
  linked(wanted: string): KnownDevice | undefined;
  /** The device with this id. */
  byId(id: string): KnownDevice | undefined;
  /** All devices, by name. */
  all(): KnownDevice[];
}

/** The devices of all replicas. */
export interface Directory extends DeviceIndex {
  /** As `resolve`, after a look at what other replicas know where the device is not known here or seems to be offline. */
  find(wanted: string): Promise<KnownDevice>;
}

/**
 * @param localName the device that "this" means: the one on the control plane's own machine, if there is one.
 * @param defaultName the device of calls that name none, where there are several. Default: such calls are refused.
 */
export function createDeviceIndex(localName?: string, defaultName?: string): DeviceIndex {
  const byName = new Map<string, KnownDevice>();
  const ids = new Map<string, KnownDevice>();
  const names = () => namesIn(byName);
  const remove = (name: string): void => {
    const device = byName.get(name);
    byName.delete(name);
    if (device !== undefined && ids.get(device.id) === device) ids.delete(device.id);
  };
  const lookUp = (wanted: string): KnownDevice | undefined => {
    if (wanted === "") return byName.size === 1 ? byName.values().next().value : byName.get(defaultName ?? "");
    const name = wanted === "this" && localName !== undefined ? localName : wanted;
    return byName.get(name) ?? ids.get(name);
  };
  const resolve = (wanted: string): KnownDevice => {
    const device = lookUp(wanted);
    if (device !== undefined) return device;
    if (byName.size === 0) throw noneKnown(wanted);
    if (wanted === "") throw noneNamed(names());
    throw fault(
      ErrorReason.UNKNOWN_DEVICE,
      { device: wanted, available: names() },
      { message: `no device "${printable(wanted)}"; there is: ${names()}` },
    );
  };
  const linked = (wanted: string): KnownDevice | undefined => {
    const device = lookUp(wanted);
    return device?.online === true ? device : undefined;
  };
  return {
    put(device) {
      if (byName.get(device.name)?.id !== device.id) remove(device.name);
      byName.set(device.name, device);
      ids.set(device.id, device);
    },
    remove,
    resolve,
    linked,
    byId: (id) => ids.get(id),
    all: () => [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** @param catchUp brings what other replicas know into the index. */
export function createDirectory(index: DeviceIndex, catchUp: () => Promise<void>): Directory {
  return {
    ...index,
    async find(wanted) {
      const device = index.linked(wanted);
      if (device !== undefined) return device;
      await catchUp();
      return index.resolve(wanted);
    },
  };
}

/** So many devices are named to a caller who means none of them. */
const MAX_NAMES = 20;

/** The names there are; of many, some and how many more. A refusal has to fit into the headers of gRPC. */
function namesIn(devices: ReadonlyMap<string, KnownDevice>): string {
  const names = devices.keys().take(MAX_NAMES).toArray().sort().join(", ");
  return devices.size <= MAX_NAMES ? names : `${names} and ${devices.size - MAX_NAMES} more`;
}

function noneKnown(wanted: string): Error {
  const message =
    "no device is known yet: let one join with `reeve device join-token NAME`, or name one to dial in REEVE_DIAL_DEVICES, " +
    "and try again when `reeve device list` shows it";
  return fault(ErrorReason.UNKNOWN_DEVICE, { device: wanted, available: "" }, { message });
}

function noneNamed(names: string): Error {
  return fault(
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
  const [service] = name.split(":", 1);
  const unavailable = device.unavailable.find(({ tool }) => tool === name || (tool === service && name !== service));
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
