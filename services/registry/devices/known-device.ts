import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Device,
  type DeviceLock,
  DeviceSchema,
  type LinkMode,
  LinkState,
} from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  type ListDevicesRequest,
  type ListDevicesResponse,
  ListDevicesResponseSchema,
} from "../../../gen/ts/reeve/device/v1/device_service_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { type BatchVerifier, createBatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { createKeyring, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { RECEIPT_TYPE } from "../../../lib/sign/payload-types.ts";
import type { Tool } from "../../../lib/tool/codec.ts";
import { pageOf } from "../pages.ts";
import { type OfferedTool, offeredTools } from "../tools/offered.ts";
import type { DeviceIndex } from "./directory.ts";
import { labelsOf } from "./manifest.ts";

/** A device that has shown its manifest, now or before. */
export interface KnownDevice {
  id: string;
  name: string;
  manifest: Manifest;
  /** SHA-256 of the manifest's signed bytes, in hex. */
  manifestDigest: string;
  tools: ReadonlyMap<string, OfferedTool>;
  labels: Record<string, string>;
  /** Tools that cannot be called and why: what the device says, and what of its announced services is not taken. */
  unavailable: readonly UnavailableTool[];
  /** Checks receipts against the device's pinned key. */
  receipts: BatchVerifier;
  /** Whether some replica holds its session, at the time of the question. */
  online: boolean;
  lastSeenMs: number;
  /** How it was linked last. */
  linkMode: LinkMode;
  /** The replica that holds its session, or held it last. */
  replicaId: string;
}

/** A tool that cannot be called on a device, or a service of it that is not taken, and why. */
export interface UnavailableTool {
  tool: string;
  why: string;
}

/** What a device's manifest is read with. */
export interface ReadOptions {
  catalog: ReadonlyMap<string, Tool>;
  /** Names of tools that callers may use; empty keeps everything. */
  toolsAllowed: readonly string[];
  logger: Logger;
}

/** How many refused tools a log line names. */
const LOGGED_TOOLS = 10;

/** The device that a checked manifest describes, without what changes from one session to the next. */
export function readDevice(
  { manifest, digest }: { manifest: Manifest; digest: string },
  { catalog, toolsAllowed, logger }: ReadOptions,
): Omit<KnownDevice, "online" | "lastSeenMs" | "linkMode" | "replicaId"> {
  const { deviceId: id, name } = manifest;
  const { tools, unknown, refused, unavailable } = offeredTools(manifest, catalog, toolsAllowed);
  for (const { name: service, why, limit } of refused) {
    const fields = { service, device: name, why, ...(limit === undefined ? {} : { limit }) };
    logger.warn(fields, "announced service refused");
  }
  if (unavailable.length > 0) {
    const some = unavailable.slice(0, LOGGED_TOOLS).map(({ tool, why }) => `${tool} (${why})`);
    const fields = { device: name, count: unavailable.length, tools: some.join(", ") };
    logger.warn(fields, "announced tools refused");
  }
  for (const tool of unknown) {
    logger.warn({ tool, device: name }, "unknown tool in tools_allowed ignored");
  }
  const stated = new Set(manifest.unavailable.map(({ tool }) => tool));
  const found = [
    ...unavailable,
    ...refused.map(({ name: tool, why }) => ({ tool, why: `the service is not taken: ${why}` })),
  ];
  return {
    id,
    name,
    manifest,
    manifestDigest: digest,
    tools,
    labels: labelsOf(manifest),
    // What the device says of a tool counts before what was found here.
    unavailable: [...manifest.unavailable, ...found.filter(({ tool }) => !stated.has(tool))],
    receipts: createBatchVerifier({
      keyring: createKeyring([verifyKeyFromRaw(manifest.publicKey)]),
      statementType: RECEIPT_TYPE,
    }),
  };
}

/** The locks there are, by the devices' ids. */
export type Locks = () => Promise<ReadonlyMap<string, DeviceLock>>;

/** Devices as callers see them, with the locks of those that are locked. */
export async function withLocks(known: readonly KnownDevice[], locks: Locks): Promise<Device[]> {
  const locked = await locks();
  return known.map((one) => {
    const lock = locked.get(one.id);
    return lock === undefined ? toDevice(one) : { ...toDevice(one), lock };
  });
}

/** The devices, by name, a page at a time. */
export async function listDevices(
  directory: DeviceIndex,
  locks: Locks,
  request: ListDevicesRequest,
): Promise<ListDevicesResponse> {
  const { page, nextPageToken } = pageOf(directory.all(), request.pageSize, request.pageToken, 100);
  return create(ListDevicesResponseSchema, { devices: await withLocks(page, locks), nextPageToken });
}

function toDevice(known: KnownDevice): Device {
  const { manifest, online } = known;
  return create(DeviceSchema, {
    id: known.id,
    name: known.name,
    labels: known.labels,
    link: online ? LinkState.ONLINE : LinkState.OFFLINE,
    mode: manifest.mode,
    manifestDigest: known.manifestDigest,
    platform: manifest.platform,
    agentVersion: manifest.agentVersion,
    sandbox: manifest.sandbox,
    sandboxShortfall: manifest.sandboxShortfall,
    ...(manifest.owner && { owner: manifest.owner }),
    tools: [...known.tools.keys()].sort(),
    unavailable: known.unavailable.map(({ tool, why }) => ({ tool, why })),
    lastSeenTime: timestampFromMs(known.lastSeenMs),
    linkMode: known.linkMode,
    replicaId: online ? known.replicaId : "",
  });
}
