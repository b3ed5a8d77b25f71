import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Device, DeviceSchema, type LinkMode, LinkState } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { BatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import type { OfferedTool } from "../tools/offered.ts";

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
  /** Whether some replica holds its stream. */
  online: boolean;
  lastSeenMs: number;
  /** How it was linked last. */
  linkMode: LinkMode;
  /** The replica that holds its stream, or held it last. */
  replicaId: string;
}

/** A tool that cannot be called on a device, or a service of it that is not taken, and why. */
export interface UnavailableTool {
  tool: string;
  why: string;
}

/** What changes about a known device from one link to the next. */
export type LinkFacts = Pick<KnownDevice, "online" | "lastSeenMs" | "linkMode" | "replicaId">;

/** A device as callers see it. */
export function toDevice(known: KnownDevice): Device {
  const { manifest } = known;
  return create(DeviceSchema, {
    id: known.id,
    name: known.name,
    labels: known.labels,
    link: known.online ? LinkState.ONLINE : LinkState.OFFLINE,
    mode: manifest.mode,
    manifestDigest: known.manifestDigest,
    platform: manifest.platform,
    agentVersion: manifest.agentVersion,
    sandbox: manifest.sandbox,
    tools: [...known.tools.keys()].sort(),
    unavailable: known.unavailable.map(({ tool, why }) => ({ tool, why })),
    lastSeenTime: timestampFromMs(known.lastSeenMs),
    linkMode: known.linkMode,
    replicaId: known.online ? known.replicaId : "",
  });
}
