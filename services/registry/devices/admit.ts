import { toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { ArrivingDevice } from "./attach-stream.ts";
import type { DeviceClaim, DeviceRow, DeviceStore, Guard } from "./device-store.ts";
import { checkManifest } from "./pin.ts";
import { labelsOf } from "./read-device.ts";
import { createSuspicions } from "./suspicions.ts";
import type { HeldDevice, Welcome } from "./welcome.ts";

/** What letting devices in rests on. */
export interface AdmitOptions {
  store: Pick<DeviceStore, "take">;
  welcome: Welcome;
  guard(device: HeldDevice): Guard;
  /** What this replica knows of a device. */
  rowOf(deviceId: string): DeviceRow | undefined;
  /** Whether the device has a stream that lives, here or at another replica. */
  isLinked(row: DeviceRow): boolean;
  /** Whether this replica sends its devices away: one that goes is still alive on the dial that it gives up. */
  isDraining(): boolean;
}

/** So many dials in a row with a number that was used before are no accident. */
const MAX_LOW_DIALS = 3;
const LOW_DIALS_COUNT_MS = 5 * 60_000;

/**
 * Takes over the streams of devices that attach. Rejects with the fault that the device gets: IDENTITY_REFUSED,
 * DEVICE_LOCKED, or NOT_READY where it is to dial again.
 *
 * A dial with a number that was used before is one of two devices with the same state, or an earlier dial that was given
 * up and has come late. It is let in in neither case. Only where it came with such a number and goes on living, or where
 * such dials come again and again while the device is linked, the device is locked.
 */
export function createAdmit(options: AdmitOptions): (device: ArrivingDevice) => Promise<DeviceRow> {
  const { store, welcome } = options;
  const suspicions = createSuspicions({ limit: MAX_LOW_DIALS, withinMs: LOW_DIALS_COUNT_MS });

  const refuseLow = async (device: ArrivingDevice, came: "high" | "low" | "low_again"): Promise<never> => {
    const isCloned = came === "low_again" || (came === "low" && (await device.livesOn()));
    if (!isCloned || options.isDraining()) throw dialAgain("the dial has a number that was used before; dial again");
    await welcome.onCloned?.(device.deviceId);
    throw identityRefused("cloned", device.deviceId, { message: "the device's state is in two places" });
  };

  return async (device) => {
    const { deviceId, attachCount } = device;
    const claim = claimOf(device);
    const known = options.rowOf(deviceId);
    // One that was overtaken while it waited here is no sign of anything.
    const isLow = known !== undefined && attachCount <= known.attach_count;
    const isAgain = isLow && options.isLinked(known) && suspicions.add(deviceId);
    const came = isAgain ? "low_again" : isLow ? "low" : "high";
    const shown = { name: claim.name, labels: claim.labels, isDialed: false };
    await welcome.mayAttach?.(deviceId, shown);
    const isWelcome = options.guard({ deviceId, shown });
    const result = await store.take(claim, async (trx) => {
      if (device.left.aborted) return dialAgain("the device has given this dial up");
      if (options.isDraining()) return dialAgain("this registry is shutting down; attach elsewhere");
      return isWelcome(trx);
    });
    switch (result.kind) {
      case "taken":
        return result.row;
      case "refused":
        throw result.error;
      case "low":
        return refuseLow(device, came);
      case "other_key":
        throw identityRefused("foreign", deviceId, { message: `the name ${claim.name} belongs to another device` });
    }
  };
}

/** What a device that attaches claims to be. IDENTITY_REFUSED where its manifest does not prove it. */
function claimOf({ deviceId, manifest: envelope, attachCount }: ArrivingDevice) {
  const check = checkManifest(envelope, undefined, undefined);
  if (!check.ok) {
    throw identityRefused("malformed", deviceId, { message: `the device is not trusted: ${check.problem}` });
  }
  if (check.manifest.deviceId !== deviceId) {
    throw identityRefused("role", deviceId, { message: "the manifest is that of another device" });
  }
  const link = { linkMode: LinkMode.ATTACH, attachCount };
  return {
    ...claimBy(check.manifest, toBinary(SignedEnvelopeSchema, envelope), link),
    labels: labelsOf(check.manifest),
  };
}

/** A device with this manifest as it is written down. */
export function claimBy(
  { name, deviceId: id, publicKey }: Manifest,
  manifest: Uint8Array,
  link: Pick<DeviceClaim, "linkMode" | "attachCount">,
): DeviceClaim {
  return { name, id, publicKey, manifest, ...link };
}

function dialAgain(message: string): Error {
  return fault(ErrorReason.NOT_READY, {}, { message });
}
