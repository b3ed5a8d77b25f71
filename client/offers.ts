import { type Device, LinkState } from "../gen/ts/reeve/device/v1/device_pb.ts";
import type { Tool } from "../gen/ts/reeve/tool/v1/tool_pb.ts";
import { items } from "./pages.ts";
import type { RegistryClient } from "./registry.ts";

/** The RPCs that say what can be called. */
export type OfferClient = Pick<RegistryClient, "getDevice" | "listDevices" | "listTools">;

/** A device as it is named to people and models. */
export interface NamedDevice {
  id: string;
  /** Its id where it has no name. */
  name: string;
}

/** What devices offer: one entry for each tool of each. */
export interface Offers {
  devices: readonly NamedDevice[];
  offers: readonly { device: NamedDevice; tool: Tool }[];
}

/**
 * Reads what devices offer: those that are named, by id or name, and otherwise every one that is online.
 * Throws what the registry throws: UNKNOWN_DEVICE for a device that does not exist.
 */
export async function loadOffers(
  client: OfferClient,
  { devices: named = [], signal }: { devices?: readonly string[]; signal?: AbortSignal } = {},
): Promise<Offers> {
  const options = signal === undefined ? {} : { signal };
  const devices = namesOf(await readDevices(client, named, options));
  const offers: { device: NamedDevice; tool: Tool }[] = [];
  for (const device of devices) {
    const read = (pageToken: string) => client.listTools({ device: device.id, pageToken }, options);
    for await (const tool of items(read, (page) => page.tools)) offers.push({ device, tool });
  }
  return { devices, offers };
}

async function readDevices(
  client: OfferClient,
  named: readonly string[],
  options: { signal?: AbortSignal },
): Promise<Device[]> {
  if (named.length > 0) {
    const found: Device[] = [];
    for (const device of named) found.push((await client.getDevice({ device }, options)).device ?? missing(device));
    return found;
  }
  const read = (pageToken: string) => client.listDevices({ pageToken }, options);
  const all = await Array.fromAsync(items(read, (page) => page.devices));
  return all.filter(({ link }) => link === LinkState.ONLINE);
}

/** Each device once, in the order that they were named. */
function namesOf(devices: readonly Device[]): NamedDevice[] {
  const byId = new Map(devices.map(({ id, name }) => [id, { id, name: name === "" ? id : name }]));
  return [...byId.values()];
}

function missing(device: string): never {
  throw new TypeError(`the registry returned no device ${device}`);
}
