import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import type { Directory } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { parseSelector } from "./selector.ts";

/** Which devices are wanted, and how many at most. */
export interface Choice {
  /** Labels that they must have; empty where devices are named. */
  selector: string;
  /** Devices by id or name; empty where a selector is given. */
  devices: readonly string[];
  /** The most that may be called. 0 is the default of 100. */
  maxDevices: number;
}

/** How many devices a fan-out calls at most by default. */
const DEFAULT_MAX_DEVICES = 100;

/**
 * The devices of a choice: those with the labels, by name, or those that are named, in that order, each once. Devices
 * that are offline count: their calls fail, or are queued for them. Throws INVALID_INPUT where there is not one way to choose,
 * UNKNOWN_DEVICE, and SELECTION_REFUSED where none or too many are left.
 */
export function chooseDevices(choice: Choice, directory: Pick<Directory, "all" | "resolve">): KnownDevice[] {
  const { selector, devices } = choice;
  if (selector === "" && devices.length === 0) throw wrong("selector", "give a selector, or name devices");
  if (selector !== "" && devices.length > 0) throw wrong("devices", "give a selector or name devices, not both");
  const chosen = selector === "" ? named(devices, directory) : directory.all().filter(matching(selector));
  const maxDevices = choice.maxDevices === 0 ? DEFAULT_MAX_DEVICES : choice.maxDevices;
  if (chosen.length === 0) throw refused(choice, 0, maxDevices, `no device has the labels ${selector}`);
  if (chosen.length > maxDevices) {
    const message = `${chosen.length} devices would be called, and at most ${maxDevices} may be; nothing was started`;
    throw refused(choice, chosen.length, maxDevices, message);
  }
  return chosen;
}

function matching(selector: string): (device: KnownDevice) => boolean {
  const matches = parseSelector(selector);
  return ({ labels }) => matches(labels);
}

function named(wanted: readonly string[], { resolve }: Pick<Directory, "resolve">): KnownDevice[] {
  return [...new Map(wanted.map((name) => resolve(name)).map((device) => [device.id, device])).values()];
}

function refused({ selector }: Choice, matched: number, maxDevices: number, message: string): Error {
  const metadata = { selector, matched: String(matched), max_devices: String(maxDevices) };
  return fault(ErrorReason.SELECTION_REFUSED, metadata, { message });
}

function wrong(field: string, message: string): Error {
  return invalidInput([{ field, rule: "one_of", message }]);
}
