import { setTimeout as sleep } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import type { Transaction } from "kysely";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { RegistryTables } from "../tables.ts";
import type { DeviceRows } from "./device-rows.ts";
import type { DeviceStore, Taken } from "./device-store.ts";
import { labelsOf } from "./manifest.ts";
import { attachAgain, type DeviceSession } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { createSlidingCounter } from "./sliding-counter.ts";

/** What a device says of itself, and how it is reached. */
export interface ShownDevice {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** The registry dials it, as its configuration says, so that it need not have enrolled. */
  isDialed: boolean;
}

/** A device to decide about. */
export interface AdmittedDevice {
  deviceId: string;
  /** Undefined: only whether it is locked or removed counts, not what it calls itself. */
  shown: ShownDevice | undefined;
}

/** Which devices may connect. Enrollment implements it. */
export interface AdmissionPolicy {
  /** Rejects with DEVICE_LOCKED or IDENTITY_REFUSED for a device that may not connect. Default: all may. */
  mayAttach?(deviceId: string, shown: ShownDevice): Promise<void>;
  /**
   * Those of many devices that may not connect, by id, with the fault of each: one query for all. Within a transaction it
   * sees what that sees. Default: only devices whose `checks` change are asked about again.
   */
  refusals?(devices: readonly AdmittedDevice[], trx?: Transaction<RegistryTables>): Promise<ReadonlyMap<string, Error>>;
  /** A device was refused because its state is in two places. */
  onCloned?(deviceId: string): Promise<void>;
}

export interface AdmissionOptions {
  policy: AdmissionPolicy;
  store: Pick<DeviceStore, "take">;
  rows: Pick<DeviceRows, "byName" | "byId" | "apply" | "isElsewhere">;
  sessions: Pick<Sessions, "get" | "all" | "wakeDialers">;
  /** Whether this replica drains: a device that leaves is still alive on the stream that it gives up. */
  isDraining(): boolean;
  /** Ends what runs on a device, in less than 2 seconds. */
  endCalls(name: string): Promise<void>;
  logger: Logger;
}

/** Decides which devices may connect, and whether those that are connected still may. */
export interface Admission {
  /**
   * Admits a session, and writes down that this replica holds the device. Rejects with the fault that the device gets:
   * IDENTITY_REFUSED, DEVICE_LOCKED, or NOT_READY where it is to connect again.
   *
   * An attach count that was used before comes from one of two devices with the same state, or from an earlier dial that
   * was given up and has come late. Neither is admitted. Only a session that came with such a count and stays alive, or
   * several in a row while the device is connected, show a clone: then the device is locked.
   */
  admit(session: DeviceSession): Promise<void>;
  /** Writes down that this replica holds a device that it dials. */
  claim(session: DeviceSession): Promise<void>;
  /** Asks again about a device that is connected here, until there is an answer. */
  recheck(name: string, deviceId: string): Promise<void>;
  /** Whether the device that is dialed under this name was refused, and is not to be dialed until that changes. */
  isRefused(name: string): boolean;
  close(): void;
}

/** So many attach counts in a row that were used before are no accident. */
const MAX_LOW_COUNTS = 3;
const LOW_COUNTS_WITHIN_MS = 5 * 60_000;

/** How often all sessions are compared with the database, in milliseconds. */
const COMPARE_MS = 1500;

/** From a question without an answer to the next try, in milliseconds. */
const RETRY_MS = 1000;

/**
 * Asks when a device comes, when its row says that something has changed, and from time to time about all: a change that a
 * crash left unsaid, or that came during an admission, ends the session nevertheless.
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { policy, store, rows, sessions, logger } = options;
  const closing = new AbortController();
  /** Devices that are dialed and were refused, by name. */
  const refused = new Map<string, AdmittedDevice>();
  const lowCounts = createSlidingCounter({ limit: MAX_LOW_COUNTS, withinMs: LOW_COUNTS_WITHIN_MS });

  /** By session, since all are compared again and again. */
  const admitted = new WeakMap<DeviceSession, AdmittedSession>();
  const admittedAs = (session: DeviceSession): AdmittedSession => {
    const known = admitted.get(session) ?? admittedSession(session);
    admitted.set(session, known);
    return known;
  };
  const shownBy = (session: DeviceSession): ShownDevice => admittedAs(session).shown;
  /** Takes the device's row; what the policy says within the transaction counts. */
  const take = (session: DeviceSession): Promise<Taken> => {
    const { name, deviceId, hello, transport } = session;
    const device = {
      name,
      id: deviceId,
      publicKey: hello.manifest.publicKey,
      manifest: toBinary(SignedEnvelopeSchema, hello.envelope),
      linkMode: transport === "attached" ? LinkMode.ATTACH : LinkMode.DIRECT,
      attachCount: hello.attachCount,
    };
    return store.take(device, async (trx) => {
      if (session.gone.aborted) return attachAgain("the device has given this dial up");
      if (options.isDraining()) return attachAgain("this registry is shutting down");
      return (await policy.refusals?.([admittedAs(session)], trx))?.get(deviceId);
    });
  };
  const taken = (session: DeviceSession, result: Extract<Taken, { kind: "taken" }>): void => {
    session.epoch = result.row.epoch;
    rows.apply(result.row);
  };
  const otherKey = ({ name, deviceId }: DeviceSession): Error =>
    identityRefused("foreign", deviceId, { message: `the name ${name} belongs to another device` });

  const admitAttached = async (session: DeviceSession): Promise<void> => {
    const { deviceId, hello } = session;
    const known = rows.byId(deviceId);
    // One that was overtaken while it waited here is no sign of anything.
    const isLow = known !== undefined && hello.attachCount <= known.attach_count;
    const isConnected = known !== undefined && (sessions.get(deviceId) !== undefined || rows.isElsewhere(known));
    const isAgain = isLow && isConnected && lowCounts.add(deviceId);
    await policy.mayAttach?.(deviceId, shownBy(session));
    const result = await take(session);
    if (result.kind === "taken") return taken(session, result);
    if (result.kind === "refused") throw result.error;
    if (result.kind === "other_key") throw otherKey(session);
    const isCloned = isAgain || (isLow && (await session.isAlive()));
    if (!isCloned || options.isDraining()) throw attachAgain("the dial has a count that was used before");
    await policy.onCloned?.(deviceId);
    throw identityRefused("cloned", deviceId, { message: "the device's state is in two places" });
  };
  const admitDialed = async (session: DeviceSession): Promise<void> => {
    const { name, deviceId, hello } = session;
    const row = rows.byName(name);
    if (row !== undefined && !Buffer.from(row.public_key).equals(hello.manifest.publicKey)) throw otherKey(session);
    try {
      await policy.mayAttach?.(deviceId, shownBy(session));
      const manifest = toBinary(SignedEnvelopeSchema, hello.envelope);
      // Each replica dials it, and one of them holds it.
      const isHeld = row !== undefined && rows.isElsewhere(row) && Buffer.from(row.manifest).equals(manifest);
      if (!isHeld) await claim(session);
    } catch (error: unknown) {
      if (isRefusal(error)) refuse(session, error);
      throw error;
    }
    readmit(name);
  };
  const claim = async (session: DeviceSession): Promise<void> => {
    const result = await take(session);
    if (result.kind === "taken") return taken(session, result);
    throw result.kind === "refused" ? result.error : otherKey(session);
  };

  const refuse = (session: DeviceSession, error: unknown): void => {
    const { name, transport } = session;
    if (transport !== "dialed") return;
    if (!refused.has(name)) logger.warn({ device: name, err: error }, "dialed device refused");
    refused.set(name, admittedAs(session));
  };
  const readmit = (name: string): void => {
    if (refused.delete(name)) sessions.wakeDialers();
  };
  const expel = (session: DeviceSession, error: Error): void => {
    refuse(session, error);
    session.move("drain");
    // Its programs would run on if it were only cut off, and their callers would wait for a device that does not come back.
    const end = () => session.end(error);
    options.endCalls(session.name).then(end, end);
  };
  /** Calls of this replica may wait for a device that another one holds, or that is offline. */
  const expelElsewhere = async (name: string, deviceId: string): Promise<void> => {
    const found = await policy.refusals?.([{ deviceId, shown: undefined }]).catch(() => undefined);
    if (isLocked(found?.get(deviceId))) await options.endCalls(name);
  };
  const compare = async (refusals: NonNullable<AdmissionPolicy["refusals"]>): Promise<void> => {
    const connected = sessions.all();
    if (connected.length + refused.size === 0) return;
    const devices: AdmittedDevice[] = connected.map(admittedAs);
    devices.push(...refused.values());
    const found = await refusals(devices);
    for (const session of connected) {
      const error = found.get(session.deviceId);
      if (error !== undefined) expel(session, error);
    }
    for (const [name, { deviceId }] of refused) if (!found.has(deviceId)) readmit(name);
  };
  let isComparing = false;
  const { refusals } = policy;
  const compareOnce = async (): Promise<void> => {
    if (refusals === undefined || isComparing) return;
    isComparing = true;
    await compare(refusals).catch((err: unknown) => logger.warn({ err }, "admissions not compared with the database"));
    isComparing = false;
  };
  const timer = setInterval(() => void compareOnce(), COMPARE_MS);
  timer.unref();

  return {
    admit: (session) => (session.transport === "attached" ? admitAttached(session) : admitDialed(session)),
    claim,
    async recheck(name, deviceId) {
      if (policy.mayAttach === undefined) return;
      while (!closing.signal.aborted) {
        const session = sessions.get(deviceId);
        const shown = session === undefined ? refused.get(name)?.shown : shownBy(session);
        if (shown === undefined) return expelElsewhere(name, deviceId);
        try {
          await policy.mayAttach(deviceId, shown);
          return readmit(name);
        } catch (error: unknown) {
          if (isRefusal(error)) {
            if (session !== undefined) expel(session, error);
            return;
          }
          logger.warn({ device: name, err: error }, "admission of a device not rechecked; trying again");
          await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
        }
      }
    },
    isRefused: (name) => refused.has(name),
    close() {
      closing.abort();
      clearInterval(timer);
    },
  };
}

/** A device whose session says what it calls itself. */
interface AdmittedSession extends AdmittedDevice {
  shown: ShownDevice;
}

function admittedSession({ deviceId, name, hello, transport }: DeviceSession): AdmittedSession {
  return { deviceId, shown: { name, labels: labelsOf(hello.manifest), isDialed: transport === "dialed" } };
}

/** True where a device is locked, by an operator or because its state is in two places. */
function isLocked(error: unknown): boolean {
  return reasonOf(error) === ErrorReason.DEVICE_LOCKED || faultDetail(error)?.metadata.why === "cloned";
}

/** True for a refusal that is valid until it is changed. Anything else, such as an outage of the database, passes. */
function isRefusal(error: unknown): error is Error {
  const reason = reasonOf(error);
  return reason === ErrorReason.IDENTITY_REFUSED || reason === ErrorReason.DEVICE_LOCKED;
}
