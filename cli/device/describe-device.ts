import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Device,
  LinkStateSchema,
  ModeSchema,
  type OwnerManifestState,
  SandboxLevel,
  SandboxLevelSchema,
} from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { pageSize } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { expiryText } from "../print/expiry.ts";
import { type Page, readPages } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import type { Style } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import { ageText, timeAndAge } from "../print/time.ts";
import type { Session } from "../session.ts";
import { lockText } from "./lock-text.ts";

/** Devices, by name. */
export function listDevices({ registry }: Pick<Session, "registry">, limit = Infinity): Promise<Page<Device>> {
  return readPages(
    async (pageToken, room) => {
      const page = await registry.listDevices({ pageToken, pageSize: pageSize(room, 1000) });
      return { items: page.devices, nextPageToken: page.nextPageToken };
    },
    { limit },
  );
}

/** Devices as a table. */
export function devicesTable(devices: readonly Device[], context: CommandContext): string {
  const now = context.now();
  const columns = ["NAME", "ID", "STATE", "MODE", "PLATFORM", "TOOLS", "SEEN", "LABELS"];
  const rows = devices.map((device) => [
    device.name,
    device.id,
    stateOf(device),
    enumName(ModeSchema, device.mode),
    device.platform,
    String(device.tools.length),
    ageText(device.lastSeenTime, now),
    labelsText(device),
  ]);
  const colors = { STATE: { locked: "red", online: "green" } } as const;
  return listTable(columns, rows, context, { keep: ["NAME", "ID"], colors });
}

/** One device in full. */
export function describeDevice(device: Device, style: Style, now: number): string {
  const facts = {
    name: device.name,
    id: device.id,
    state: stateOf(device),
    lock: device.lock === undefined ? "" : lockText(device.lock),
    "last seen": timeAndAge(device.lastSeenTime, now),
    mode: enumName(ModeSchema, device.mode),
    labels: labelsText(device),
    platform: device.platform,
    agent: device.agentVersion,
    sandbox: `${enumName(SandboxLevelSchema, device.sandbox)}${device.sandboxShortfall === "" ? "" : `: ${device.sandboxShortfall}`}`,
    manifest: device.owner === undefined ? "" : ownerText(device.owner, now),
    "manifest digest": device.manifestDigest,
    replica: device.replicaId,
    tools: device.tools.join(", "),
  };
  const known = Object.fromEntries(Object.entries(facts).filter(([, text]) => text !== ""));
  const unavailable = device.unavailable.map(({ tool, why }) => ({ tool, why }));
  return readable(unavailable.length === 0 ? known : { ...known, unavailable }, style);
}

/** Says of locked devices, on standard error, why they are, and how they take part again. */
export function noteLocks(devices: readonly Device[], context: CommandContext): void {
  for (const { name, lock } of devices) {
    if (lock === undefined) continue;
    const why = lockText(lock);
    const how = `\`reeve device unlock ${name}\` lets it take part again`;
    context.stderr.write(`reeve: ${visibleLine(`${name} is locked${why === "" ? "" : `: ${why}`}`)}; ${how}\n`);
  }
}

/** The owner's manifest that a device keeps, and how long it holds. */
export function ownerText({ version, keyId, expireTime, sandbox }: OwnerManifestState, now: number): string {
  const floor = sandbox > SandboxLevel.NONE ? `, sandbox at least ${enumName(SandboxLevelSchema, sandbox)}` : "";
  const end = expiryText(expireTime === undefined ? 0 : timestampMs(expireTime), now);
  return `version ${version} of the owner's, signed by ${keyId}, ${end}${floor}`;
}

function stateOf({ lock, link }: Device): string {
  return lock === undefined ? enumName(LinkStateSchema, link) : "locked";
}

function labelsText({ labels }: Device): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
}
