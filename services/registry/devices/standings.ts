import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../../lib/log/log.ts";
import type { Guard } from "./device-store.ts";
import { type HeldDevice, isLocked, isShutOut, type ShownDevice, type Welcome } from "./welcome.ts";

/** Whether the devices that are linked to this very process are still welcome. */
export interface Standings {
  /** Whether the device that is dialed under this name was refused, and is not to be dialed until that changes. */
  isBarred(name: string): boolean;
  /** Asks about a device that was dialed, before it is trusted. Rejects where nobody can say now. */
  mayTrust(name: string, deviceId: string, shown: ShownDevice): Promise<boolean>;
  /** Asks again about a device that is linked here, until somebody can say. */
  askAgain(name: string, deviceId: string): Promise<void>;
  /** A last look at a device within the transaction that takes its stream. */
  guard(device: HeldDevice): Guard;
  close(): void;
}

/** A device whose stream this process holds, and the name of its link. */
export interface HeldHere extends HeldDevice {
  name: string;
}

/** What standings rest on. */
export interface StandingsOptions {
  welcome: Welcome;
  /** The devices that have dialed, and hold a stream to this process. */
  attached(): HeldHere[];
  /** The one of these that has this id. */
  attachedAs(deviceId: string): HeldHere | undefined;
  /** Whether a link is to this very process. */
  isHere(name: string): boolean;
  /** Whether this process dials a device of the name. */
  isDialed(name: string): boolean;
  /** Ends what runs on the device, so that the device still hears of it; resolves when it is told, or after a second. */
  endCalls(name: string): Promise<void>;
  /** Ends the device's stream. */
  end(deviceId: string, error: Error): void;
  /** The device may be reached another way from now on. */
  reroute(name: string): void;
  logger: Logger;
}

/** How often all devices that are linked here are compared with what the database says, in milliseconds. */
const COMPARE_MS = 1500;

/** From a question that nobody could answer to the next try, in milliseconds. */
const RETRY_MS = 1000;

/**
 * Asks when a device comes, when somebody says that something about it has changed, and from time to time about all: what
 * a crash kept from being said, or what happened while a device was on its way in, ends its stream nevertheless.
 */
export function createStandings(options: StandingsOptions): Standings {
  const { welcome, logger } = options;
  const closing = new AbortController();
  /** What devices that are dialed have said of themselves, by the name of the link. */
  const dialed = new Map<string, HeldHere>();
  const barred = new Set<string>();

  const shutOut = (name: string, deviceId: string, error: Error): void => {
    if (options.isDialed(name) && !barred.has(name)) {
      logger.warn({ device: name, err: error }, "a device that is dialed is not welcome");
      barred.add(name);
    }
    const cut = (): void => {
      options.end(deviceId, error);
      options.reroute(name);
    };
    // Its programs would run on if it were only cut off, and their callers would wait for a device that does not come back.
    options.endCalls(name).then(cut, cut);
  };
  /** Calls of this replica may wait for a device that another one holds, or that nobody does. */
  const endElsewhere = async (name: string, deviceId: string): Promise<void> => {
    const refused = await welcome.refusals?.([{ deviceId, shown: undefined }]).catch(() => undefined);
    const error = refused?.get(deviceId);
    if (isLocked(error)) await options.endCalls(name);
  };
  const letIn = (name: string): void => {
    if (barred.delete(name)) options.reroute(name);
  };
  const isHeld = ({ name }: HeldHere): boolean => barred.has(name) || options.isHere(name);
  const heldAs = (name: string, deviceId: string): HeldHere | undefined => {
    const attached = options.attachedAs(deviceId);
    if (attached !== undefined) return attached;
    const device = dialed.get(name);
    return device !== undefined && isHeld(device) ? device : undefined;
  };
  const compare = async (refusals: NonNullable<Welcome["refusals"]>): Promise<void> => {
    const devices = [...options.attached(), ...dialed.values().filter(isHeld)];
    if (devices.length === 0) return;
    const refused = await refusals(devices);
    for (const { name, deviceId } of devices) {
      const error = refused.get(deviceId);
      if (error === undefined) letIn(name);
      else shutOut(name, deviceId, error);
    }
  };
  let isComparing = false;
  const compareOnce = async (refusals: NonNullable<Welcome["refusals"]>): Promise<void> => {
    if (isComparing) return;
    isComparing = true;
    try {
      await compare(refusals);
    } catch (err: unknown) {
      logger.warn({ err }, "nobody can say whether the linked devices are still welcome");
    }
    isComparing = false;
  };
  const { refusals } = welcome;
  const timer = refusals && setInterval(() => void compareOnce(refusals), COMPARE_MS);
  timer?.unref();

  return {
    isBarred: (name) => barred.has(name),
    async mayTrust(name, deviceId, shown) {
      dialed.set(name, { name, deviceId, shown });
      try {
        await welcome.mayAttach?.(deviceId, shown);
      } catch (error: unknown) {
        if (!(error instanceof Error && isShutOut(error))) throw error;
        shutOut(name, deviceId, error);
        return false;
      }
      letIn(name);
      return !closing.signal.aborted;
    },
    async askAgain(name, deviceId) {
      if (welcome.mayAttach === undefined) return;
      for (;;) {
        const device = heldAs(name, deviceId);
        if (closing.signal.aborted) return;
        if (device?.shown === undefined) return endElsewhere(name, deviceId);
        try {
          await welcome.mayAttach(deviceId, device.shown);
          return letIn(name);
        } catch (error: unknown) {
          if (error instanceof Error && isShutOut(error)) return shutOut(name, deviceId, error);
          logger.warn({ device: name, err: error }, "nobody can say whether the device is still welcome");
          await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
        }
      }
    },
    guard: (device) => async (trx) => (await welcome.refusals?.([device], trx))?.get(device.deviceId),
    close() {
      closing.abort();
      clearInterval(timer);
    },
  };
}
