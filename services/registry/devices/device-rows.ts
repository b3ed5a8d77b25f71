import { setImmediate } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { createSharedRun } from "../../../lib/async/shared-run.ts";
import type { Membership } from "../cluster/membership.ts";
import type { DeviceRow, DeviceStore } from "./device-store.ts";
import type { DeviceIndex } from "./directory.ts";
import { type KnownDevice, type ReadOptions, readDevice } from "./known-device.ts";
import { checkManifest } from "./manifest.ts";

/** The devices in the database as this replica knows them. What changes there is brought into the directory. */
export interface DeviceRows {
  byName(name: string): DeviceRow | undefined;
  byId(deviceId: string): DeviceRow | undefined;
  /** Applies a row, unless a newer one is known. */
  apply(row: DeviceRow): void;
  /** Whether another replica, which is alive, holds the device. */
  isElsewhere(row: DeviceRow): boolean;
  all(): Iterable<DeviceRow>;
  /** Reads what has changed. Callers at the same time share one run that begins after they asked. */
  catchUp(): Promise<void>;
  close(): Promise<void>;
}

export interface RowsOptions extends ReadOptions {
  directory: DeviceIndex;
  membership: Membership;
  store: Pick<DeviceStore, "since">;
  /** How often to look by itself, in milliseconds; 0 never. */
  pollMs: number;
  /** Whether this process has a session with a device. */
  isHere(deviceId: string): boolean;
  /** A row is new or has changed, and is in the directory. */
  onChanged(row: DeviceRow, old: DeviceRow | undefined): void;
  /** A device was removed, or another one has its name: the directory does not have it under this name any more. */
  onRemoved(row: DeviceRow): void;
}

/** Follows from the beginning; the first `catchUp` brings everything in. */
export function createDeviceRows(options: RowsOptions): DeviceRows {
  const { directory, membership, logger, store, pollMs } = options;
  const rows = new Map<string, DeviceRow>();
  // Below the number of what was written before changes had numbers.
  let last = -1;

  const isElsewhere = (row: Pick<DeviceRow, "replica_id">): boolean =>
    row.replica_id !== membership.self && membership.isAlive(row.replica_id);
  /** The manifest is verified again: the database is not trusted. */
  const read = (row: DeviceRow): KnownDevice | undefined => {
    const check = checkManifest(fromBinary(SignedEnvelopeSchema, row.manifest), row.name, row.public_key);
    if (!check.ok) {
      logger.error({ device: row.name, problem: check.problem }, "device row not trusted");
      return undefined;
    }
    // Not the row itself, whose manifest may be large: a call may have the device when its row is gone.
    const { id, name, replica_id, last_seen_ms, link_mode } = row;
    const newest = () => {
      const known = rows.get(name);
      return known?.id === id ? known : { replica_id, last_seen_ms, link_mode };
    };
    return {
      ...readDevice(check, options),
      get online() {
        return options.isHere(id) || isElsewhere(newest());
      },
      get lastSeenMs() {
        return newest().last_seen_ms;
      },
      get linkMode() {
        return newest().link_mode as LinkMode;
      },
      get replicaId() {
        return newest().replica_id;
      },
    };
  };
  const forget = (row: DeviceRow): void => {
    rows.delete(row.name);
    if (directory.byId(row.id)?.name === row.name) directory.remove(row.name);
    options.onRemoved(row);
  };
  const apply = (row: DeviceRow): void => {
    const known = rows.get(row.name);
    if (known !== undefined && known.change >= row.change) return;
    const isOther = row.removed === 1 || known?.id !== row.id;
    if (known !== undefined && isOther) forget(known);
    if (row.removed === 1) return;
    const old = isOther ? undefined : known;
    rows.set(row.name, row);
    const isRead = directory.byId(row.id)?.name === row.name;
    if (old === undefined || !isRead || !Buffer.from(old.manifest).equals(row.manifest)) {
      const device = read(row);
      if (device !== undefined) directory.put(device);
    }
    options.onChanged(row, old);
  };
  const catchingUp = createSharedRun(async () => {
    for (const row of await store.since(last)) {
      last = Math.max(last, row.change);
      try {
        apply(row);
      } catch (err: unknown) {
        // One device's row must not keep the others out.
        logger.error({ err, device: row.name }, "device row not readable");
      }
      // A manifest takes a while to read, and there may be a thousand: calls and heartbeats go on in between.
      await setImmediate();
    }
  });
  const poll = () =>
    catchingUp.run().catch((error: unknown) => logger.warn({ err: error }, "device directory not readable"));
  const timer = pollMs === 0 ? undefined : setInterval(() => void poll(), pollMs);

  return {
    byName: (name) => rows.get(name),
    byId: (deviceId) => rows.get(directory.byId(deviceId)?.name ?? ""),
    isElsewhere,
    all: () => rows.values(),
    apply,
    catchUp: catchingUp.run,
    async close() {
      clearInterval(timer);
      await catchingUp.quiet();
    },
  };
}
