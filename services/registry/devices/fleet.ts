import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { DeviceCommand, DeviceHello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Peers } from "../cluster/peers.ts";
import { type AdmissionPolicy, createAdmission } from "./admission.ts";
import { createDeviceLink, type DeviceDialer, type DeviceLink, type DeviceRoute } from "./device-link.ts";
import { createDeviceRows } from "./device-rows.ts";
import type { DeviceRow, DeviceStore } from "./device-store.ts";
import type { DeviceIndex } from "./directory.ts";
import type { TrustedKeys } from "./keyring-follower.ts";
import type { ReadOptions } from "./known-device.ts";
import { checkManifest } from "./manifest.ts";
import { attachAgain, type DeviceSession } from "./session.ts";
import { createSessions, type Sessions, type SessionsOptions } from "./sessions.ts";

export interface FleetOptions extends ReadOptions, Pick<SessionsOptions, "heartbeatMs"> {
  /** The devices that the registry dials, by name. */
  dialers: ReadonlyMap<string, DeviceDialer>;
  /** The other replicas. Undefined: devices at another replica are not reached. */
  peers: Pick<Peers, "forwardDevice" | "problemOf"> | undefined;
  directory: DeviceIndex;
  store: DeviceStore;
  membership: Membership;
  keys?: TrustedKeys;
  admission: AdmissionPolicy;
  /** Has the other replicas read that the directory has changed. */
  wake(): void;
  /** How often to look for what other replicas have changed, in milliseconds; 0 where there are none. */
  pollMs: number;
  now(): number;
}

/** The devices, and a link to each: over its session with this process, or over the replica that holds it. */
export interface Fleet {
  /** The sessions with this process, for the RPC that devices call. */
  readonly sessions: Pick<Sessions, "attach" | "get">;
  /** The link to a device, by the device's id, wherever its session is. Undefined for one that is not known. */
  link(deviceId: string): DeviceLink | undefined;
  /** A device's admission may have changed: every replica with a session asks again. */
  recheck(deviceId: string): Promise<void>;
  /** A device was removed: its name is free, and its sessions end everywhere. */
  forget(deviceId: string): Promise<void>;
  /** Reads a change that was just committed, here and at the other replicas. */
  announce(): Promise<void>;
  /** The device's session for another replica; undefined where this process has none. */
  shared(deviceId: string): DeviceLink["share"] | undefined;
  /** Reads what other replicas have changed. */
  catchUp(): Promise<void>;
  /** Sends the devices to other replicas. What runs is still reported on the sessions that they have here. */
  drain(): void;
  /** How many devices have a session with this process. */
  readonly connectedHere: number;
  /** Resolves when every device that is dialed has been admitted or refused once, or after `ms`. */
  started(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** How often to look for rows that name this process without a session, in milliseconds. */
const SWEEP_MS = 5000;

/** A link of a device without a session here is closed when it was idle for so long, in milliseconds. */
const IDLE_MS = 60_000;

/**
 * Owns the sessions, admissions, rows and links. A name is pinned to the key that it shows first: a device that comes later
 * with another key is refused.
 */
export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { directory, store, membership, logger, dialers, keys, peers } = options;
  const { self } = membership;
  const firsts = new Map([...dialers.keys()].map((name) => [name, Promise.withResolvers<void>()]));
  const dialFailures = new Map<string, string>();
  /** By the devices' names. A link is made when it is first needed. */
  const links = new Map<string, { link: DeviceLink; usedMs: number }>();
  let draining = false;
  let closed = false;

  const sessions = createSessions({
    heartbeatMs: options.heartbeatMs,
    async admit(session) {
      await admission.admit(session);
      options.wake();
    },
    onAdmitted,
    onGone,
  });
  const rows = createDeviceRows({
    ...options,
    isHere: (deviceId) => sessions.get(deviceId) !== undefined,
    onChanged(row, old) {
      const session = sessions.get(row.id);
      const isHeldElsewhere = row.replica_id !== self && session !== undefined && row.epoch > session.epoch;
      if (isHeldElsewhere && session.transport === "attached" && !draining) session.end(movedOn(row.id));
      if (old !== undefined && row.checks !== old.checks) void admission.recheck(row.name, row.id);
      tend(row);
    },
    onRemoved(row) {
      // It may go on under another name.
      if (rows.byId(row.id) === undefined) {
        sessions.get(row.id)?.end(identityRefused("revoked", row.id, { message: "the device was removed" }));
      }
      dropLink(row.name);
    },
  });
  const admission = createAdmission({
    policy: options.admission,
    store,
    rows,
    sessions,
    isDraining: () => draining,
    endCalls: async (name) => links.get(name)?.link.shutOut(),
    logger,
  });

  function linkTo(name: string): DeviceLink {
    const known = links.get(name);
    const link =
      known?.link ??
      createDeviceLink({
        choose: () => routeTo(name),
        onHello: (hello) => isPinned(name, hello),
        initialCommands: () => newKeys(sessionOf(name)),
        whyOffline: () => whyOffline(name),
      });
    links.set(name, { link, usedMs: performance.now() });
    return link;
  }
  function dropLink(name: string): void {
    const known = links.get(name);
    links.delete(name);
    void known?.link.abandon();
  }
  function sessionOf(name: string): DeviceSession | undefined {
    const row = rows.byName(name);
    return row && sessions.get(row.id);
  }
  function routeTo(name: string): DeviceRoute | undefined {
    const row = rows.byName(name);
    if (row === undefined) return undefined;
    const session = sessions.get(row.id);
    if (session !== undefined) return { key: session, dialer: session.open };
    if (peers === undefined || !rows.isElsewhere(row)) return undefined;
    return { key: `${row.replica_id} ${row.epoch}`, dialer: peers.forwardDevice(row.replica_id, row.id) };
  }
  /** A session's hello was verified with its admission; the one of a device at another replica is verified here. */
  function isPinned(name: string, { manifest }: DeviceHello): boolean {
    const row = rows.byName(name);
    const session = row && sessions.get(row.id);
    if (session !== undefined && session.hello.envelope === manifest) return true;
    const check = checkManifest(manifest, name, row?.public_key);
    if (!check.ok) logger.error({ device: name, problem: check.problem }, "device not trusted");
    return check.ok;
  }
  function whyOffline(name: string): string | undefined {
    const row = rows.byName(name);
    if (row === undefined || !rows.isElsewhere(row)) return undefined;
    const problem = peers === undefined ? "there is no way to it" : peers.problemOf(row.replica_id);
    if (problem === undefined) return undefined;
    return `the replica that holds its session is not reached (${problem}); see REEVE_REGISTRY_ADVERTISE_URL`;
  }
  function newKeys(session: DeviceSession | undefined): readonly DeviceCommand[] {
    if (keys === undefined || session === undefined || keys.version <= session.keyringVersion) return [];
    const commands = keys.trustFor(session.keyringVersion);
    session.keyringVersion = keys.version;
    return commands;
  }
  function onAdmitted(session: DeviceSession): void {
    const { name, deviceId, transport } = session;
    const row = rows.byName(name);
    const isHeld = row?.replica_id === self && row.epoch === session.epoch;
    if (row?.id !== deviceId || (transport === "attached" && !isHeld)) {
      session.end(attachAgain("the device has changed during its admission"));
      return;
    }
    const tools = directory.byId(deviceId)?.tools.size;
    logger.info({ device: name, device_id: deviceId, tools, transport }, "device session opened");
    firsts.get(name)?.resolve();
    dialFailures.delete(name);
    linkTo(name).reroute();
    // A change during the admission found no session to end.
    void admission.recheck(name, deviceId);
  }
  function onGone(session: DeviceSession): void {
    const { name, deviceId, epoch } = session;
    logger.info({ device: name, device_id: deviceId, reason: String(session.gone.reason) }, "device session closed");
    links.get(name)?.link.pause();
    if (!closed && epoch > 0) inBackground(store.release(deviceId, epoch));
  }
  function onDialFailed(name: string, error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error);
    if (dialFailures.get(name) !== problem) logger.warn({ device: name, err: error }, "device not dialed");
    dialFailures.set(name, problem);
    // A start waits for devices that come, not for those that are refused.
    if (admission.isRefused(name)) firsts.get(name)?.resolve();
  }
  /** Another replica may hold the device now, or none: then it is this one's to claim where it dials it. */
  function tend(row: DeviceRow): void {
    const session = sessions.get(row.id);
    const isOrphan = row.replica_id !== self && !rows.isElsewhere(row);
    if (isOrphan && !closed && session?.transport === "dialed") {
      inBackground(admission.claim(session).finally(() => void admission.recheck(row.name, row.id)));
    }
    links.get(row.name)?.link.reroute();
  }
  function inBackground(work: Promise<void>): void {
    work.then(announce).catch((error: unknown) => {
      if (!closed) logger.error({ err: error }, "device directory not written");
    });
  }
  /** The others look, and so does this replica, which may have written more than it knows. */
  async function announce(): Promise<void> {
    options.wake();
    await rows.catchUp();
  }
  /** Releases rows that stay wrong from one look to the next: their release was not written. Closes idle links. */
  let doubtful = new Set<DeviceRow>();
  function sweep(): void {
    const before = doubtful;
    doubtful = new Set();
    for (const row of rows.all()) if (row.replica_id === self && sessions.get(row.id) === undefined) doubtful.add(row);
    for (const row of doubtful) if (before.has(row)) inBackground(store.release(row.id, row.epoch));
    const idleSince = performance.now() - IDLE_MS;
    for (const [name, { link, usedMs }] of links) {
      if (usedMs <= idleSince && !link.busy && sessionOf(name) === undefined) dropLink(name);
    }
  }

  await rows.catchUp();
  for (const [name, dialer] of dialers) {
    const mayDial = () => !draining && !admission.isRefused(name) && sessionOf(name) === undefined;
    sessions.dial(name, { dialer, mayDial, onFailed: (error) => onDialFailed(name, error) });
  }
  const sweeping = setInterval(sweep, SWEEP_MS);
  const stopKeys = keys?.onChange(() => {
    for (const session of sessions.all()) {
      const link = links.get(session.name)?.link;
      if (link?.isUp === true) for (const command of newKeys(session)) link.send(command);
    }
  });
  const stopWatching = membership.onChange(() => {
    for (const row of rows.all()) tend(row);
  });

  return {
    sessions,
    link(deviceId) {
      const name = directory.byId(deviceId)?.name;
      return name === undefined ? undefined : linkTo(name);
    },
    async recheck(deviceId) {
      await store.recheck(deviceId);
      await announce();
    },
    async forget(deviceId) {
      await store.remove(deviceId);
      await announce();
    },
    announce,
    shared(deviceId) {
      const session = sessions.get(deviceId);
      return session && linkTo(session.name).share;
    },
    catchUp: () => (options.pollMs === 0 ? Promise.resolve() : rows.catchUp()),
    drain() {
      draining = true;
      sessions.drain();
    },
    get connectedHere() {
      return sessions.size;
    },
    async started(ms) {
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, ms);
      await Promise.race([Promise.all([...firsts.values()].map(({ promise }) => promise)), timeout.promise]);
      clearTimeout(timer);
    },
    async close() {
      closed = true;
      clearInterval(sweeping);
      stopKeys?.();
      admission.close();
      stopWatching();
      await Promise.all([...links.values()].map(({ link }) => link.close()));
      await sessions.close();
      await rows.close();
      await store.releaseAll();
      options.wake();
    },
  };
}

function movedOn(deviceId: string): Error {
  return fault(ErrorReason.LEASE_LOST, { lease: deviceId }, { message: "the device has attached anew" });
}
