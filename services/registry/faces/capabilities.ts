import { create } from "@bufbuild/protobuf";
import {
  type Availability,
  AvailabilitySchema,
  type Capability,
  CapabilitySchema,
  MissingReason,
} from "../../../gen/ts/reeve/capability/v1/capability_pb.ts";
import {
  type GetCapabilityRequest,
  type GetCapabilityResponse,
  GetCapabilityResponseSchema,
  type ListCapabilitiesRequest,
  type ListCapabilitiesResponse,
  ListCapabilitiesResponseSchema,
} from "../../../gen/ts/reeve/capability/v1/capability_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Risk } from "../../../gen/ts/reeve/options/v1/capability_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { type CapabilitySpec, derivedFrom } from "../../../lib/tool/capability.ts";
import { isInMode } from "../../../lib/tool/mode.ts";
import { loadCatalog, toolByName } from "../../../lib/toolschema/catalog-file.ts";
import type { Directory } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { pageOf } from "../pages.ts";

const RISKS: Readonly<Record<CapabilitySpec["risk"], Risk>> = {
  low: Risk.LOW,
  medium: Risk.MEDIUM,
  high: Risk.HIGH,
};

/** What of a device says which capabilities it has. */
type DeviceTools = Pick<KnownDevice, "name" | "tools" | "unavailable" | "manifest">;

/** The capabilities that are built in, or those of a device, by name, a page at a time. */
export async function listCapabilities(
  directory: Directory,
  { device, pageSize, pageToken }: ListCapabilitiesRequest,
): Promise<ListCapabilitiesResponse> {
  const all = capabilitiesOf(device === "" ? undefined : await directory.find(device));
  const { page, nextPageToken } = pageOf(all, pageSize, pageToken, 200);
  return create(ListCapabilitiesResponseSchema, { capabilities: [...page], nextPageToken });
}

/** One capability. Fault: NOT_FOUND. */
export async function getCapability(
  directory: Directory,
  { name, device }: GetCapabilityRequest,
): Promise<GetCapabilityResponse> {
  const all = capabilitiesOf(device === "" ? undefined : await directory.find(device));
  const capability = all.find((one) => one.name === name);
  if (capability !== undefined) return create(GetCapabilityResponseSchema, { capability });
  const message = `no capability ${JSON.stringify(name)}`;
  throw fault(ErrorReason.NOT_FOUND, { resource: `capabilities/${name}` }, { message });
}

/** The built-in capabilities, and those that the device announces and grants, with their availability there. Pure. */
export function capabilitiesOf(device: DeviceTools | undefined): Capability[] {
  const builtIn = loadCatalog().capabilities;
  const specs = device === undefined ? builtIn : [...builtIn, ...announcedBy(device)];
  return specs
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ risk, ...spec }) =>
      create(CapabilitySchema, {
        ...spec,
        risk: RISKS[risk],
        ...(device && { availability: availabilityOn(device, { risk, ...spec }) }),
      }),
    );
}

function announcedBy({ tools }: DeviceTools): CapabilitySpec[] {
  const specs = [...tools.values()].map(({ spec }) => spec);
  const names = new Set(specs.flatMap(({ capabilities }) => capabilities).filter((name) => name.includes(":")));
  return [...names].map((name) => {
    const derived = derivedFrom(name, specs);
    const risk = derived.destructive ? "high" : derived.readOnly ? "low" : "medium";
    return { name, title: name, description: "Announced by the device.", risk, ...derived };
  });
}

function availabilityOn(device: DeviceTools, { name, tools }: CapabilitySpec): Availability {
  if (tools.some((tool) => device.tools.has(tool))) return create(AvailabilitySchema, { available: true });
  const { mode, capabilities } = device.manifest;
  if (capabilities.includes(name))
    return missing(
      MissingReason.NOT_ALLOWED,
      `the control plane's list of allowed tools leaves out ${tools.join(", ")}`,
    );
  const why = tools.flatMap((tool) => device.unavailable.find((one) => one.tool === tool)?.why ?? []);
  if (why.length === tools.length) return missing(MissingReason.NOT_AVAILABLE, [...new Set(why)].join("; "));
  if (!tools.some((tool) => isInMode(mode, toolByName(tool)?.scope ?? "sudo")))
    return missing(
      MissingReason.MODE,
      `the device is in ${modeName(mode)} mode, which leaves it out: its owner starts it with another mode`,
    );
  return missing(MissingReason.NOT_GRANTED, `the owner of ${device.name} does not grant it in the manifest`);
}

function missing(reason: MissingReason, message: string): Availability {
  return create(AvailabilitySchema, { available: false, reason, message });
}

function modeName(mode: Mode): string {
  return mode === Mode.SUDO ? "sudo" : "user";
}
