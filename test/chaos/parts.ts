import { setTimeout as sleep } from "node:timers/promises";
import type { Distributed } from "../../testkit/distributed.ts";
import type { ServiceProcess } from "../../testkit/service-process.ts";

/** One thing that can be broken and mended. */
export interface Part {
  /** Such as "registry 0". */
  name: string;
  kind: "registry" | "policy" | "device" | "nats" | "postgres" | "proxy";
  readonly up: boolean;
  /** When it was mended last, by performance.now(); -Infinity where it was never broken. */
  readonly upSince: number;
  /** Until when it took connections and served none, by performance.now(): Infinity while it does, -Infinity where it never did. */
  readonly pausedUntil: number;
  kill(): Promise<void>;
  /** Starts it again. Tried until it works, as whatever supervises services does. */
  start(): Promise<void>;
  /** Makes it stand still, or swallow everything, and go on. */
  pause(): void;
  resume(): void;
  /** Resets it without a pause. */
  reset(): void;
}

/** All parts of a control plane and its devices. */
export interface Parts {
  all: readonly Part[];
  /** Parts that ended without being reported to, or neither came up nor ended when they were started; in words. */
  readonly accidents: readonly string[];
  /** Starts that failed, as when the database was gone meanwhile, and were tried again; in words. */
  readonly retries: readonly string[];
  /** Looks whether a part has ended by itself, and starts it again. */
  supervise(): Promise<void>;
}

/** How often a start is tried. A part that does not start in that many is a finding of its own. */
const TRIES = 20;

/** How long a start may take, in milliseconds: far longer than it waits for a database. */
const START_MS = 90_000;

/** Gathers them. */
export function createParts({ registries, policies, devices, nats, postgres }: Distributed): Parts {
  const accidents: string[] = [];
  const retries: string[] = [];
  const processes = new Map<Part, ServiceProcess>();

  const part = (
    name: string,
    kind: Part["kind"],
    acts: Pick<Part, "kill" | "start" | "pause" | "resume" | "reset">,
  ) => {
    let up = true;
    let upSince = Number.NEGATIVE_INFINITY;
    let pausedUntil = Number.NEGATIVE_INFINITY;
    const broken = () => {
      up = false;
    };
    const mended = () => {
      up = true;
      upSince = performance.now();
    };
    const one: Part = {
      name,
      kind,
      get up() {
        return up;
      },
      get upSince() {
        return upSince;
      },
      get pausedUntil() {
        return pausedUntil;
      },
      async kill() {
        broken();
        await acts.kill();
      },
      async start() {
        for (let tries = 1; ; tries++) {
          try {
            if (await isUpInTime(acts.start())) return mended();
            accidents.push(`${name} neither came up nor ended`);
            await acts.kill();
          } catch (error: unknown) {
            retries.push(`${name} did not start: ${error instanceof Error ? error.message : String(error)}`);
            if (tries === TRIES) throw error;
            await sleep(200);
          }
        }
      },
      pause() {
        broken();
        pausedUntil = Number.POSITIVE_INFINITY;
        acts.pause();
      },
      resume() {
        acts.resume();
        mended();
        pausedUntil = upSince;
      },
      reset() {
        acts.reset();
        mended();
      },
    };
    return one;
  };
  const none = () => undefined;
  const ofProcess = (name: string, kind: Part["kind"], process: ServiceProcess): Part => {
    const one = part(name, kind, { ...process, reset: none });
    processes.set(one, process);
    return one;
  };
  const server = (kind: "nats" | "postgres", one: { kill(): Promise<void>; restart(): Promise<void> }) =>
    part(kind, kind, { kill: one.kill, start: one.restart, pause: none, resume: none, reset: none });

  const all = [
    ...registries.map((one, n) => ofProcess(`registry ${n}`, "registry", one)),
    ...policies.map((one, n) => ofProcess(`policy ${n}`, "policy", one)),
    ...devices.map(({ name, process }) => ofProcess(`device ${name}`, "device", process)),
    server("nats", nats),
    server("postgres", postgres),
    ...devices.map(({ name, proxy }) =>
      part(`proxy ${name}`, "proxy", {
        kill: async () => proxy.cut(),
        start: async () => undefined,
        pause: proxy.blackhole,
        resume: proxy.restore,
        reset: proxy.cut,
      }),
    ),
  ];
  return {
    all,
    accidents,
    retries,
    async supervise() {
      for (const [one, process] of processes) {
        if (!one.up || process.running) continue;
        accidents.push(`${one.name} ended by itself:\n${process.log.slice(-30).join("\n")}`);
        await one.kill();
        await one.start();
      }
    },
  };
}

async function isUpInTime(start: Promise<void>): Promise<boolean> {
  const late = new AbortController();
  const timer = sleep(START_MS, false, { signal: late.signal });
  try {
    return await Promise.race([start.then(() => true), timer]);
  } finally {
    late.abort();
    timer.catch(() => undefined);
  }
}
