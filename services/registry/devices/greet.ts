import { toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { DeviceHello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { claimBy } from "./admit.ts";
import type { DeviceClaim } from "./device-store.ts";
import type { FleetOptions } from "./fleet-options.ts";
import type { Here } from "./links.ts";
import { checkManifest, type PinResult } from "./pin.ts";
import { labelsOf, readDevice } from "./read-device.ts";
import type { DeviceRows } from "./rows.ts";
import type { Standings } from "./standings.ts";

/** What greeting rests on. */
export interface GreetOptions extends FleetOptions {
  rows: DeviceRows;
  standings: Standings;
  /** Ends the stream that a device holds to this replica. */
  detach(deviceId: string, error: Error): void;
  /** Writes down that this replica is linked to a device that it dials. */
  claim(device: DeviceClaim): void;
  /** A device is linked to this very process, in this epoch of its stream. */
  onLinked(name: string, epoch: number): void;
  /** Whether the fleet is closed. */
  isClosed(): boolean;
}

type Shown = Extract<PinResult, { ok: true }>;

/**
 * Takes what a device says of itself at the start of a link. True where it is to be trusted: its manifest is its own, and
 * what it attached with, or whoever keeps that has said that a device which was dialed is welcome.
 */
export function createGreeter(options: GreetOptions) {
  const { directory, rows, standings, membership, logger, now } = options;

  /** Puts a device that is linked here into the directory at once, so that calls can begin; its row follows. */
  const seen = (shown: Shown, how: Here) => {
    const linkMode = how === "attached" ? LinkMode.ATTACH : LinkMode.DIRECT;
    const link = { online: true, lastSeenMs: now(), linkMode, replicaId: membership.self };
    const known = directory.byId(shown.manifest.deviceId);
    const same = known?.name === shown.manifest.name && known.manifestDigest === shown.digest;
    const device = same ? Object.assign(known, link) : readDevice(shown, link, options);
    directory.put(device);
    logger.info({ device: device.name, device_id: device.id, tools: device.tools.size, how }, "device linked");
  };
  const isStored = (name: string, manifest: Uint8Array): boolean => {
    const row = rows.byName(name);
    return row !== undefined && Buffer.from(row.manifest).equals(manifest);
  };
  const greetAttached = (shown: Shown, manifest: Uint8Array, attachCount: bigint): boolean => {
    const { name, deviceId } = shown.manifest;
    if (!isStored(name, manifest)) {
      options.detach(deviceId, dialAgain("the device was let in as something else meanwhile"));
      return false;
    }
    seen(shown, "attached");
    const row = rows.byName(name);
    // A stream that a newer one has replaced already has nothing to release.
    if (row?.attach_count === Number(attachCount)) options.onLinked(name, row.epoch);
    return true;
  };
  const greetDialed = async (shown: Shown, bytes: Uint8Array): Promise<boolean> => {
    const { manifest } = shown;
    const { name } = manifest;
    const told = { name, labels: labelsOf(manifest), isDialed: true };
    if (!(await standings.mayTrust(name, manifest.deviceId, told)) || options.isClosed()) return false;
    seen(shown, "dialed");
    const row = rows.byName(name);
    const isElsewhere = row !== undefined && rows.isElsewhere(row);
    if (!(isElsewhere && isStored(name, bytes))) options.claim(claimBy(manifest, bytes, DIALED));
    return true;
  };

  return async (
    name: string,
    { manifest: envelope, attachCount }: DeviceHello,
    how: Here | undefined,
  ): Promise<boolean> => {
    const check = checkManifest(envelope, name, rows.byName(name)?.public_key);
    if (!check.ok || envelope === undefined) {
      logger.error({ device: name, problem: check.ok ? "no manifest" : check.problem }, "a device is not trusted");
      return false;
    }
    const bytes = toBinary(SignedEnvelopeSchema, envelope);
    if (how === "attached") return greetAttached(check, bytes, attachCount);
    return how === "dialed" ? greetDialed(check, bytes) : true;
  };
}

/** How a device is linked that was dialed, which counts nothing. */
export const DIALED = { linkMode: LinkMode.DIRECT, attachCount: 0 };

/** The fault for a device whose stream is no good any more, while the device is. */
export function dialAgain(what: string): Error {
  return fault(ErrorReason.NOT_READY, {}, { message: `${what}; attach again` });
}
