import { toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { EnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Hello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { DeviceLink } from "./device-link.ts";
import type { DeviceRow, ShownDevice } from "./device-store.ts";
import type { AttachedHello, FleetOptions } from "./fleet-options.ts";
import { createFollower } from "./follow-devices.ts";
import { createLinks, type Here } from "./links.ts";
import { checkManifest } from "./pin.ts";
import { labelsOf, readDevice } from "./read-device.ts";
import type { Way } from "./route.ts";
import { createDeviceRows } from "./rows.ts";

/** The devices, and the way to each: the stream it holds to this replica, one that dials it, or the replica that has it. */
export interface Fleet {
  /** The link to a device, by the device's id, wherever its stream is. Undefined for one that is not known. */
  link(deviceId: string): DeviceLink | undefined;
  /** Takes over the stream of a device that attaches, or rejects with the fault that the device gets. */
  admit(hello: AttachedHello): Promise<void>;
  /** Ends the stream that a device holds to this replica, at once. */
  detach(deviceId: string, error: Error): void;
  /** Says that a device may be welcome or not from now on: every replica that is linked to it asks again. */
  recheck(deviceId: string): Promise<void>;
  /** Says that a device was removed: its name is free, and its streams end everywhere. */
  forget(deviceId: string): Promise<void>;
  /** The device that has a name; undefined where it is free. */
  pinned(name: string): Promise<{ deviceId: string; publicKey: Uint8Array } | undefined>;
  /** The device's stream for another replica; undefined where this one does not hold it. */
  shared(deviceId: string): DeviceLink["share"] | undefined;
  /** Brings in what other replicas have changed. */
  catchUp(): Promise<void>;
  /** Lets devices that have attached elsewhere tell the rest of what runs on the streams they held here. */
  drain(): void;
  /** How many devices are linked to this replica. */
  readonly linkedHere: number;
  /** Resolves when every device that is dialled has been linked once, or after `ms`. */
  settled(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** How often to look for streams that this replica is thought to hold and does not, in milliseconds. */
const SWEEP_MS = 5000;

/**
 * Holds the links. A name is pinned to the key that it shows first: a device that comes later with another key is
 * refused.
 */
export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { directory, store, membership, streams, welcome, logger, now } = options;
  const { self } = membership;
  /** By name: the newest epoch in which this replica took the device's stream, and that of the stream it has. */
  const taken = new Map<string, number>();
  const linked = new Map<string, number>();
  const firsts = new Map<string, PromiseWithResolvers<void>>();
  /** Devices that are dialled and are not welcome, by id. */
  const barred = new Set<string>();
  let draining = false;
  let closed = false;

  const rows = createDeviceRows({
    ...options,
    isHere: (name) => links.here(name) !== undefined,
    onChanged(row, old) {
      const isNewer = row.replica_id !== self && row.epoch > (taken.get(row.name) ?? 0);
      if (isNewer && !draining) detach(row.id, movedOn(row.id));
      if (old !== undefined && row.checks !== old.checks) void askAgain(row);
      tend(row);
    },
    onRemoved(row) {
      detach(row.id, identityRefused("revoked", row.id, "the device was removed"));
      links.drop(row.name);
      if (options.openers.has(row.name)) links.link(row.name);
    },
  });
  const choose = (name: string): Way | undefined => {
    const row = rows.byName(name);
    if (row !== undefined && streams.has(row.id)) return { key: "attached", opener: streams.opener(row.id) };
    const dialled = options.openers.get(name);
    if (dialled !== undefined && !barred.has(row?.id ?? "")) return { key: "dialled", opener: dialled };
    if (row === undefined || options.remote === undefined || !rows.isElsewhere(row)) return undefined;
    return { key: `${row.replica_id} ${row.epoch}`, opener: options.remote(row.replica_id, row.id) };
  };
  const links = createLinks({
    choose,
    onHello,
    onGone(name) {
      const row = rows.byName(name);
      const epoch = linked.get(name);
      linked.delete(name);
      logger.warn({ device: name }, "device unlinked");
      const known = directory.linked(name);
      if (known !== undefined) known.online = row !== undefined && rows.isElsewhere(row);
      if (!closed && row !== undefined && epoch !== undefined) inBackground(store.release(row.id, epoch));
    },
    whyOffline(name) {
      const row = rows.byName(name);
      if (row === undefined || options.remote !== undefined || !rows.isElsewhere(row)) return undefined;
      return "another replica holds its stream, and replicas reach each other only where REEVE_NATS_URL is set";
    },
    isKept: (name) => options.openers.has(name),
    keys: options.keys,
  });
  const follower = createFollower({ store, pollMs: options.pollMs, apply: rows.apply, logger });

  function onHello(name: string, { manifest: envelope, attachCount }: Hello, how: Here | undefined): boolean {
    const row = rows.byName(name);
    const check = checkManifest(envelope, name, row?.public_key);
    if (!check.ok || envelope === undefined) {
      logger.error({ device: name, problem: check.ok ? "no manifest" : check.problem }, "a device is not trusted");
      return false;
    }
    if (how === undefined) return true;
    const { id, tools } = seen(check, how);
    logger.info({ device: name, device_id: id, tools: tools.size, how }, "device linked");
    const bytes = toBinary(EnvelopeSchema, envelope);
    const isStored = row !== undefined && rows.isElsewhere(row) && Buffer.from(row.manifest).equals(bytes);
    // A stream that a newer one has replaced already has nothing to release.
    if (how === "attached" && row?.attach_count === Number(attachCount)) linked.set(name, row.epoch);
    if (how === "dialled" && !isStored) inBackground(claim(shownBy(check.manifest, bytes, LinkMode.DIRECT, 0)));
    firsts.get(name)?.resolve();
    return true;
  }
  /** Puts a device that is linked here into the directory at once, so that calls can begin; its row follows. */
  const seen = (checked: { manifest: Manifest; digest: string }, how: Here) => {
    const linkMode = how === "attached" ? LinkMode.ATTACH : LinkMode.DIRECT;
    const link = { online: true, lastSeenMs: now(), linkMode, replicaId: self };
    const known = directory.byId(checked.manifest.deviceId);
    const same = known?.name === checked.manifest.name && known.manifestDigest === checked.digest;
    const device = same ? Object.assign(known, link) : readDevice(checked, link, options);
    directory.put(device);
    return device;
  };
  /** Writes down that this replica is linked to a device that it dials. */
  const claim = async (device: ShownDevice): Promise<void> => {
    const result = await store.take(device);
    if (result.kind !== "taken") throw new Error(`the device ${device.name} shows another key than at another replica`);
    linked.set(device.name, result.row.epoch);
    rows.apply(result.row);
    await askAgain(result.row);
  };
  const askAgain = async (row: DeviceRow): Promise<void> => {
    const known = directory.byId(row.id);
    const isHere = streams.has(row.id) || links.here(row.name) !== undefined || barred.has(row.id);
    if (welcome.mayAttach === undefined || known === undefined || !isHere) return;
    try {
      const isDialled = options.openers.has(row.name) && !streams.has(row.id);
      await welcome.mayAttach(row.id, { name: known.name, labels: known.labels, isDialled });
      barred.delete(row.id);
    } catch (error: unknown) {
      if (options.openers.has(row.name)) barred.add(row.id);
      detach(row.id, error instanceof Error ? error : new Error(String(error)));
    }
    links.reroute(row.name);
  };
  /** Who holds a device may have changed: it may be reached another way, or be this replica's to show. */
  function tend(row: DeviceRow): void {
    const isOrphan = row.replica_id !== self && !rows.isElsewhere(row);
    if (isOrphan && !closed && links.here(row.name)?.how === "dialled") inBackground(claim(shownIn(row)));
    links.reroute(row.name);
  }
  function detach(deviceId: string, error: Error): void {
    if (streams.has(deviceId)) streams.end(deviceId, error);
  }
  function inBackground(work: Promise<void>): void {
    work.then(announce).catch((error: unknown) => {
      if (!closed) logger.error({ err: error }, "the directory of devices could not be written");
    });
  }
  /** Others look, and so does this replica, which may have written more than it knows. */
  const announce = async (): Promise<void> => {
    options.nudge();
    await follower.look();
  };

  await follower.look();
  for (const name of options.openers.keys()) {
    firsts.set(name, Promise.withResolvers());
    links.link(name);
  }
  streams.onAttach(({ deviceId }) => {
    const row = rows.byId(deviceId);
    if (row === undefined) return;
    links.link(row.name);
    links.reroute(row.name);
  });
  /** Rows that say that this replica holds a stream which it does not: its device left before it was let in. */
  let doubtful = new Set<DeviceRow>();
  const sweep = (): void => {
    const before = doubtful;
    doubtful = new Set();
    for (const row of rows.all()) {
      if (row.replica_id !== self || streams.has(row.id) || links.here(row.name) !== undefined) continue;
      if (before.has(row)) inBackground(store.release(row.id, row.epoch));
      else doubtful.add(row);
    }
  };
  const sweeping = options.pollMs === 0 ? undefined : setInterval(sweep, SWEEP_MS);
  const stopWatching = membership.onChange(() => {
    for (const row of rows.all()) {
      rows.refresh(row);
      tend(row);
    }
  });

  return {
    link(deviceId) {
      const name = directory.byId(deviceId)?.name;
      return name === undefined ? undefined : links.link(name);
    },
    async admit({ deviceId, manifest: envelope, attachCount }) {
      const check = checkManifest(envelope, undefined, undefined);
      if (!check.ok) throw identityRefused("malformed", deviceId, `the device is not trusted: ${check.problem}`);
      const { manifest } = check;
      if (manifest.deviceId !== deviceId) {
        throw identityRefused("role", deviceId, "the manifest is that of another device");
      }
      await welcome.mayAttach?.(deviceId, {
        name: manifest.name,
        labels: labelsOf(manifest),
        isDialled: false,
      });
      const bytes = toBinary(EnvelopeSchema, envelope);
      const result = await store.take(shownBy(manifest, bytes, LinkMode.ATTACH, attachCount));
      if (result.kind === "other_key") {
        throw identityRefused("foreign", deviceId, `the name ${manifest.name} belongs to another device`);
      }
      if (result.kind === "cloned") {
        await welcome.onCloned?.(deviceId);
        throw identityRefused("cloned", deviceId, "the device's state is in two places");
      }
      taken.set(manifest.name, result.row.epoch);
      rows.apply(result.row);
      options.nudge();
    },
    detach,
    async recheck(deviceId) {
      await store.recheck(deviceId);
      await announce();
    },
    async forget(deviceId) {
      await store.remove(deviceId);
      await announce();
    },
    async pinned(name) {
      await follower.look();
      const row = rows.byName(name);
      return row && { deviceId: row.id, publicKey: row.public_key };
    },
    shared(deviceId) {
      const row = rows.byId(deviceId);
      return row && links.here(row.name)?.link.share;
    },
    catchUp: () => (options.pollMs === 0 ? Promise.resolve() : follower.look()),
    drain() {
      draining = true;
    },
    get linkedHere() {
      return links.hereCount;
    },
    async settled(ms) {
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, ms);
      await Promise.race([Promise.all([...firsts.values()].map(({ promise }) => promise)), timeout.promise]);
      clearTimeout(timer);
    },
    async close() {
      closed = true;
      clearInterval(sweeping);
      stopWatching();
      await links.close();
      await follower.close();
      await store.releaseAll();
      options.nudge();
    },
  };
}

function shownBy(manifest: Manifest, bytes: Uint8Array, linkMode: LinkMode, attachCount: number): ShownDevice {
  const { name, deviceId: id, publicKey } = manifest;
  return { name, id, publicKey, manifest: bytes, linkMode, attachCount };
}

function shownIn({ name, id, public_key: publicKey, manifest }: DeviceRow): ShownDevice {
  return { name, id, publicKey, manifest, linkMode: LinkMode.DIRECT, attachCount: 0 };
}

function movedOn(deviceId: string): Error {
  return fault(ErrorReason.LEASE_LOST, { lease: deviceId }, { message: "the device has attached anew" });
}

function identityRefused(why: string, identity: string, message: string): Error {
  return fault(ErrorReason.IDENTITY_REFUSED, { why, identity }, { message });
}
