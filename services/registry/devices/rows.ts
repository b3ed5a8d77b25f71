import { fromBinary } from "@bufbuild/protobuf";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Membership } from "../cluster/membership.ts";
import type { DeviceRow } from "./device-store.ts";
import type { Directory } from "./directory.ts";
import type { KnownDevice, LinkFacts } from "./linked-device.ts";
import { checkManifest } from "./pin.ts";
import { type ReadOptions, readDevice } from "./read-device.ts";

/** What this replica knows of the directory in the database, which it brings into its own. */
export interface DeviceRows {
  byName(name: string): DeviceRow | undefined;
  byId(deviceId: string): DeviceRow | undefined;
  /** Takes over a row, unless a newer one is known. */
  apply(row: DeviceRow): void;
  /** Whether another replica, which is there, holds the device's stream. */
  isElsewhere(row: DeviceRow): boolean;
  /** Finds out anew whether a device is linked. */
  refresh(row: DeviceRow): void;
  all(): Iterable<DeviceRow>;
}

/** What the rows rest on. */
export interface RowsOptions extends ReadOptions {
  directory: Directory;
  membership: Membership;
  /** Whether a device is linked to this very process. */
  isHere(name: string): boolean;
  /** A row is new or has changed, and is in the directory. */
  onChanged(row: DeviceRow, old: DeviceRow | undefined): void;
  /** A device was removed, or another one has its name: it is in the directory no more under this name. */
  onRemoved(row: DeviceRow): void;
}

/** Nothing is known yet. */
export function createDeviceRows(options: RowsOptions): DeviceRows {
  const { directory, membership, logger } = options;
  const rows = new Map<string, DeviceRow>();
  const isElsewhere = (row: DeviceRow): boolean =>
    row.replica_id !== membership.self && membership.isAlive(row.replica_id);
  const linkOf = (row: DeviceRow): LinkFacts => ({
    online: options.isHere(row.name) || isElsewhere(row),
    lastSeenMs: row.last_seen_ms,
    linkMode: row.link_mode as LinkMode,
    replicaId: row.replica_id,
  });
  /** The manifest is checked again: the database is not believed. */
  const read = (row: DeviceRow): KnownDevice | undefined => {
    const check = checkManifest(fromBinary(SignedEnvelopeSchema, row.manifest), row.name, row.public_key);
    if (check.ok) return readDevice(check, linkOf(row), options);
    logger.error({ device: row.name, problem: check.problem }, "a device in the database is not trusted");
    return undefined;
  };
  const put = (row: DeviceRow, old: DeviceRow | undefined): void => {
    const known = directory.byId(row.id);
    const same = old !== undefined && known?.name === row.name && Buffer.from(old.manifest).equals(row.manifest);
    const device = same ? Object.assign(known, linkOf(row)) : read(row);
    if (device !== undefined) directory.put(device);
  };
  const forget = (row: DeviceRow): void => {
    rows.delete(row.name);
    if (directory.byId(row.id)?.name === row.name) directory.remove(row.name);
    options.onRemoved(row);
  };

  return {
    byName: (name) => rows.get(name),
    byId: (deviceId) => rows.get(directory.byId(deviceId)?.name ?? ""),
    isElsewhere,
    all: () => rows.values(),
    apply(row) {
      const old = rows.get(row.name);
      if (old !== undefined && old.change >= row.change) return;
      const isOther = row.removed === 1 || (old !== undefined && old.id !== row.id);
      if (old !== undefined && isOther) forget(old);
      if (row.removed === 1) return;
      const before = isOther ? undefined : old;
      rows.set(row.name, row);
      put(row, before);
      options.onChanged(row, before);
    },
    refresh(row) {
      const known = directory.byId(row.id);
      if (known !== undefined) known.online = linkOf(row).online;
    },
  };
}
