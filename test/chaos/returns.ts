import type { Device } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Part } from "./parts.ts";

/** How long one device took to come back. */
export interface Return {
  device: string;
  /** What had broken first. */
  cause: string;
  /** When it was back, from the start of the measurement, in milliseconds. */
  atMs: number;
  /** From the moment from which it could come back until a registry showed it online, in milliseconds. */
  ms: number;
  /**
   * A registry was paused in that time: the balancer led every second dial to it, which no device can know. How long that takes
   * is a matter of luck then, and a platform's probes would take the replica out of the balancer.
   */
  isMisled: boolean;
}

/** Measures how devices come back. */
export interface ReturnWatch {
  readonly returns: readonly Return[];
  /** Something is about to break. */
  broken(part: Part, what: string): void;
  /** Devices that are offline. */
  offline(): string[];
  stop(): Promise<void>;
}

/** Dependencies of the measurement. */
export interface ReturnWatchOptions {
  devices: readonly { name: string; process: { log: readonly string[] } }[];
  parts: readonly Part[];
  /** The devices as a registry that is up shows them. Rejects where none answers. */
  list(): Promise<readonly Device[]>;
}

/** How often to look, in milliseconds. */
const LOOK_MS = 20;

interface Watched {
  name: string;
  log: readonly string[];
  /** Lines that were read. */
  read: number;
  /** Its newest stream has been answered, and has not ended. */
  attachedAt: number | undefined;
  offline: { since: number; cause: string } | undefined;
}

/**
 * A device is offline from when its path, its process or its stream breaks. It can come back from the moment on at which its
 * path, its process, a registry and the database are available. It is back when it has a new stream, by its own word, and a
 * registry shows it online.
 */
export function watchReturns({ devices, parts, list }: ReturnWatchOptions): ReturnWatch {
  const returns: Return[] = [];
  const watched = devices.map(
    ({ name, process }): Watched => ({
      name,
      log: process.log,
      read: process.log.length,
      attachedAt: performance.now(),
      offline: undefined,
    }),
  );
  const startedAt = performance.now();
  let lastBroken = "nothing";
  let stopped = false;

  const own = (name: string) => parts.filter((part) => part.name === `proxy ${name}` || part.name === `device ${name}`);
  /** Since when it could come back; undefined while it cannot. */
  const wholeSince = (name: string): number | undefined => {
    const needed = [...own(name), ...parts.filter(({ kind }) => kind === "postgres")];
    const registries = parts.filter(({ kind, up }) => kind === "registry" && up);
    if (registries.length === 0 || needed.some(({ up }) => !up)) return undefined;
    return Math.max(Math.min(...registries.map(({ upSince }) => upSince)), ...needed.map(({ upSince }) => upSince));
  };
  const leave = (one: Watched, since: number, cause: string): void => {
    one.attachedAt = undefined;
    one.offline ??= { since, cause };
  };
  const read = (one: Watched): void => {
    for (; one.read < one.log.length; one.read++) {
      const line = one.log[one.read] ?? "";
      if (line.includes('"msg":"attached"')) one.attachedAt = timeOf(line);
      if (line.includes('"msg":"stream to the registry ended"')) leave(one, timeOf(line), lastBroken);
    }
  };
  const look = async (): Promise<void> => {
    for (const one of watched) read(one);
    const hopeful = watched.filter(
      ({ offline, attachedAt }) => offline !== undefined && (attachedAt ?? 0) > offline.since,
    );
    if (hopeful.length === 0) return;
    const shown = await list();
    const now = performance.now();
    for (const one of hopeful) {
      const whole = wholeSince(one.name);
      const isOnline = shown.some(({ name, link }) => name === one.name && link === LinkState.ONLINE);
      if (!isOnline || whole === undefined || one.offline === undefined) continue;
      const { since, cause } = one.offline;
      const from = Math.max(since, whole);
      const isMisled = parts.some(({ kind, pausedUntil }) => kind === "registry" && pausedUntil > from);
      returns.push({ device: one.name, cause, atMs: now - startedAt, ms: Math.max(0, now - from), isMisled });
      one.offline = undefined;
    }
  };
  const run = async (): Promise<void> => {
    while (!stopped) {
      await look().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  const running = run();

  return {
    returns,
    broken(part, what) {
      lastBroken = what;
      for (const one of watched) {
        if (own(one.name).includes(part)) {
          read(one);
          leave(one, performance.now(), what);
        }
      }
    },
    offline: () => watched.flatMap(({ name, offline }) => (offline === undefined ? [] : [name])),
    async stop() {
      stopped = true;
      await running;
    },
  };
}

/** A log line's time, on this process's monotonic clock. */
function timeOf(line: string): number {
  const { time } = JSON.parse(line) as { time: string };
  return Date.parse(time) - performance.timeOrigin;
}

/** The value that so many hundredths of the numbers do not exceed; 0 where there are none. */
export function percentile(numbers: readonly number[], hundredths: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * hundredths) / 100) - 1)] ?? 0;
}
