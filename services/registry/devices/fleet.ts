import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { createAdmit } from "./admit.ts";
import type { ArrivingDevice } from "./attach-stream.ts";
import type { DeviceLink } from "./device-link.ts";
import type { DeviceClaim, DeviceRow } from "./device-store.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { createFollower } from "./follow-devices.ts";
import { createGreeter, DIALED, dialAgain } from "./greet.ts";
import { createLinks } from "./links.ts";
import type { Way } from "./route.ts";
import { createDeviceRows } from "./rows.ts";
import { createStandings, type HeldHere } from "./standings.ts";
import { sweepRows } from "./sweep-rows.ts";
import type { ShownDevice } from "./welcome.ts";

/** The devices, and the way to each: the stream it holds to this replica, one that dials it, or the replica that has it. */
export interface Fleet {
  /** The link to a device, by the device's id, wherever its stream is. Undefined for one that is not known. */
  link(deviceId: string): DeviceLink | undefined;
  /** Takes over the stream of a device that attaches, or rejects with the fault that the device gets. */
  admit(device: ArrivingDevice): Promise<void>;
  /** Ends the stream that a device holds to this replica, at once. */
  detach(deviceId: string, error: Error): void;
  /** Says that a device may be welcome or not from now on: every replica that is linked to it asks again. */
  recheck(deviceId: string): Promise<void>;
  /** Says that a device was removed: its name is free, and its streams end everywhere. */
  forget(deviceId: string): Promise<void>;
  /** Brings in a change that was just committed, here and everywhere. */
  announce(): Promise<void>;
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
  /** Resolves when every device that is dialed has been linked once, or after `ms`. */
  settled(ms: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Holds the links. A name is pinned to the key that it shows first: a device that comes later with another key is
 * refused.
 */
export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { directory, store, membership, streams, welcome, logger } = options;
  const { self } = membership;
  /** By name: the newest epoch in which this replica took the device's stream, and that of the stream it has. */
  const taken = new Map<string, number>();
  const linked = new Map<string, number>();
  const firsts = new Map<string, PromiseWithResolvers<void>>();
  let draining = false;
  let closed = false;

  const rows = createDeviceRows({
    ...options,
    isHere: (name) => links.here(name) !== undefined,
    onChanged(row, old) {
      const isNewer = row.replica_id !== self && row.epoch > (taken.get(row.name) ?? 0);
      if (isNewer && !draining) detach(row.id, movedOn(row.id));
      if (old !== undefined && row.checks !== old.checks) void standings.askAgain(row.name, row.id);
      tend(row);
    },
    onRemoved(row) {
      // It may go on under another name.
      if (rows.byId(row.id) === undefined) {
        detach(row.id, identityRefused("revoked", row.id, { message: "the device was removed" }));
      }
      links.drop(row.name);
      if (options.openers.has(row.name)) links.link(row.name);
    },
  });
  const choose = (name: string): Way | undefined => {
    const row = rows.byName(name);
    if (row !== undefined && streams.has(row.id)) return { key: "attached", opener: streams.opener(row.id) };
    const dialed = options.openers.get(name);
    if (dialed !== undefined && !standings.isBarred(name)) return { key: "dialed", opener: dialed };
    if (row === undefined || options.peers === undefined || !rows.isElsewhere(row)) return undefined;
    return { key: `${row.replica_id} ${row.epoch}`, opener: options.peers.forwardDevice(row.replica_id, row.id) };
  };
  const links = createLinks({
    choose,
    async onHello(name, hello, how) {
      const isTrusted = await greet(name, hello, how);
      // A start waits for devices that come, not for those that are not welcome.
      if (isTrusted ? how !== undefined : standings.isBarred(name)) firsts.get(name)?.resolve();
      return isTrusted;
    },
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
      if (row === undefined || !rows.isElsewhere(row)) return undefined;
      const problem = options.peers === undefined ? "there is no way to it" : options.peers.problemOf(row.replica_id);
      if (problem === undefined) return undefined;
      return `the replica that holds its session is not reached (${problem}); see REEVE_REGISTRY_ADVERTISE_URL`;
    },
    isKept: (name) => options.openers.has(name),
    keys: options.keys,
  });
  const follower = createFollower({ store, pollMs: options.pollMs, apply: rows.apply, logger });
  const shownOf = (deviceId: string, isDialed: boolean): ShownDevice | undefined => {
    const known = directory.byId(deviceId);
    return known && { name: known.name, labels: known.labels, isDialed };
  };
  const attachedAs = (deviceId: string): HeldHere | undefined => {
    if (!streams.has(deviceId)) return undefined;
    const shown = shownOf(deviceId, false);
    return { name: shown?.name ?? "", deviceId, shown };
  };
  const standings = createStandings({
    welcome,
    attached: () => streams.held().flatMap(({ deviceId }) => attachedAs(deviceId) ?? []),
    attachedAs,
    isHere: (name) => links.here(name) !== undefined,
    isDialed: (name) => options.openers.has(name),
    endCalls: (name) => links.shutOut(name),
    end: detach,
    reroute: (name) => links.reroute(name),
    logger,
  });
  const admit = createAdmit({
    store,
    welcome,
    guard: standings.guard,
    rowOf: rows.byId,
    isLinked: (row) => streams.has(row.id) || rows.isElsewhere(row),
    isDraining: () => draining,
  });

  const greet = createGreeter({
    ...options,
    rows,
    standings,
    detach,
    claim: (device) => inBackground(claim(device)),
    onLinked: (name, epoch) => linked.set(name, epoch),
    isClosed: () => closed,
  });
  /** Writes down that this replica is linked to a device that it dials. */
  const claim = async (device: DeviceClaim): Promise<void> => {
    const result = await store.take(device, standings.guard({ deviceId: device.id, shown: shownOf(device.id, true) }));
    if (result.kind === "refused") return standings.askAgain(device.name, device.id);
    if (result.kind !== "taken") throw new Error(`the device ${device.name} shows another key than at another replica`);
    linked.set(device.name, result.row.epoch);
    rows.apply(result.row);
    await standings.askAgain(device.name, device.id);
  };
  /** Who holds a device may have changed: it may be reached another way, or be this replica's to show. */
  function tend(row: DeviceRow): void {
    const isOrphan = row.replica_id !== self && !rows.isElsewhere(row);
    if (isOrphan && !closed && links.here(row.name)?.how === "dialed") inBackground(claim(claimIn(row)));
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
    options.wake();
    await follower.look();
  };

  await follower.look();
  for (const name of options.openers.keys()) {
    firsts.set(name, Promise.withResolvers());
    links.link(name);
  }
  streams.onAttach(({ deviceId }) => {
    const row = rows.byId(deviceId);
    if (row?.replica_id !== self) return detach(deviceId, dialAgain("the device has changed while it was let in"));
    links.link(row.name);
    links.reroute(row.name);
    // Whoever shut it out while it was on its way in found no stream to end.
    void standings.askAgain(row.name, deviceId);
  });
  const stopSweeping = sweepRows({
    rows: rows.all,
    isWrong: (row) => row.replica_id === self && !streams.has(row.id) && links.here(row.name) === undefined,
    release: (row) => inBackground(store.release(row.id, row.epoch)),
  });
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
    async admit(device) {
      const row = await admit(device);
      taken.set(row.name, row.epoch);
      rows.apply(row);
      options.wake();
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
    announce,
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
      stopSweeping();
      standings.close();
      stopWatching();
      await links.close();
      await follower.close();
      await store.releaseAll();
      options.wake();
    },
  };
}

function claimIn({ name, id, public_key: publicKey, manifest }: DeviceRow): DeviceClaim {
  return { name, id, publicKey, manifest, ...DIALED };
}

function movedOn(deviceId: string): Error {
  return fault(ErrorReason.LEASE_LOST, { lease: deviceId }, { message: "the device has attached anew" });
}
