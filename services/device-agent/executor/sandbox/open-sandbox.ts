import { closeSync, existsSync, openSync } from "node:fs";
import type { RunOutcome } from "../executor.ts";
import { openHeldFile } from "../held-file.ts";
import type { StartedOpen } from "../open-program.ts";
import type { Spawner } from "../spawner.ts";
import type { Isolation } from "./isolation.ts";
import { type FoundMask, findMasks } from "./masks.ts";
import { createPool, type Pool } from "./pool.ts";
import { probeSandbox } from "./probe.ts";
import {
  openInSandbox,
  runInSandbox,
  type SandboxOpen,
  type SandboxRun,
  type SandboxSource,
  sandboxUnavailable,
} from "./sandbox.ts";
import { seccompFilter } from "./seccomp.ts";
import { SYSTEM_CALLS } from "./system-calls.ts";
import { COPIED, type View, viewArguments } from "./view.ts";
import { startWaiting } from "./waiting.ts";

/** What the sandboxes of one device are made from. */
export interface SandboxOptions {
  spawner: Spawner;
  /** The absolute path of bwrap; undefined where it is not installed. */
  bwrap: string | undefined;
  /** The granted folders, as real paths. */
  readRoots: readonly string[];
  writeRoots: readonly string[];
  /** Folders of the agent, hidden also where a root holds them. */
  hidden: readonly string[];
}

/** Runs programs apart from the machine. */
export interface Sandbox extends Disposable {
  /** The highest level that was shown to hold when it was opened; "none" where no program can be kept apart. */
  readonly isolation: Isolation;
  /** Why it is not higher, and what to install. Empty where there is nothing higher. */
  readonly shortfall: string;
  /** Faults: START_FAILED{program,cause}, SANDBOX_UNAVAILABLE{required}; nothing ran then. */
  run(run: SandboxRun): Promise<RunOutcome>;
  /** Starts one that stays. Faults: the same; those that are not known at once come by its end. */
  open(run: SandboxOpen): Promise<StartedOpen>;
}

/** How long a search for what has to be hidden counts, in milliseconds. */
const MASKS_MS = 60_000;

/** How many are started ahead for each way to be run. */
const MOST_WAITING = 8;

/** The sandbox of a machine that has none. */
export function noSandbox(shortfall: string): Sandbox {
  return {
    isolation: "none",
    shortfall,
    run: ({ isolation }) => Promise.reject(sandboxUnavailable(isolation, shortfall)),
    open: ({ isolation }) => Promise.reject(sandboxUnavailable(isolation, shortfall)),
    [Symbol.dispose]: () => undefined,
  };
}

/** Makes the sandbox of a device, and tries in it what must fail. */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const calls = SYSTEM_CALLS.get(process.arch);
  if (process.platform !== "linux") return noSandbox("it exists on Linux only");
  if (calls === undefined) return noSandbox(`there is no system call filter for ${process.arch}`);
  const { bwrap } = options;
  if (bwrap === undefined)
    return noSandbox("bubblewrap is not installed (0.8 or newer; on Debian: apt-get install bubblewrap)");
  const { hidden } = options;
  const roots = [...options.readRoots, ...options.writeRoots];
  const parts = { ...options, bwrap, filter: seccompFilter(calls) };
  // The trial reads no root, and a search through large ones would hold up the device's start.
  using trial = createSandbox({ ...parts, mostWaiting: 0, findMasks: () => findMasks({ roots, hidden, limit: 0 }) });
  const failure = await probeSandbox(trial, hidden);
  if (failure !== undefined) return noSandbox(failure);
  return createSandbox({ ...parts, mostWaiting: MOST_WAITING, findMasks: () => findMasks({ roots, hidden }) });
}

interface Parts extends SandboxOptions {
  bwrap: string;
  filter: Buffer;
  mostWaiting: number;
  findMasks(): Promise<FoundMask[]>;
}

function createSandbox({ spawner, bwrap, readRoots, writeRoots, filter, mostWaiting, findMasks }: Parts): Sandbox {
  using opening = new DisposableStack();
  const filterFile = opening.adopt(openHeldFile(filter), closeSync);
  const copied = COPIED.filter((path) => existsSync(path));
  const pools = new Map<string, Pool>();
  let isClosed = false;
  const look = () => ({ at: performance.now(), masks: findMasks() });
  let search: ReturnType<typeof look> | undefined = look();
  // What went wrong is reported to the run that needs it.
  search.masks.catch(() => undefined);

  const masksNow = (): Promise<FoundMask[]> => {
    if (search === undefined || performance.now() - search.at > MASKS_MS) search = look();
    return search.masks;
  };
  const start = async (isolation: View["isolation"], network: boolean, shows: readonly string[] = []) => {
    const masks = (await masksNow()).filter(({ level }) => isolation === "read_only" || level === "workspace");
    if (isClosed) throw new Error("the sandbox is closed");
    using files = new DisposableStack();
    // A descriptor of its own: once the sandbox is closed, the number of the shared one may stand for a FIFO, whose open waits.
    const filter = files.adopt(openSync(`/proc/self/fd/${filterFile}`, "r"), closeSync);
    const args = files.adopt(
      openHeldFile(
        viewArguments({ isolation, network, readRoots: [...readRoots, ...shows], writeRoots, masks }, copied),
      ),
      closeSync,
    );
    const copies = copied.map((path) => files.adopt(openSync(path, "r"), closeSync));
    return await startWaiting({ spawner, bwrap, files: [args, filter, ...copies] });
  };
  const poolOf = (isolation: View["isolation"], network: boolean): Pool => {
    const key = `${isolation} ${network}`;
    const pool = pools.get(key) ?? createPool({ start: () => start(isolation, network), most: mostWaiting });
    pools.set(key, pool);
    return pool;
  };
  opening.defer(() => {
    isClosed = true;
    for (const pool of pools.values()) pool[Symbol.dispose]();
  });
  const owned = opening.move();
  const broken = (): void => {
    search = undefined;
    for (const each of pools.values()) each.clear();
  };
  const sourceFor = ({ isolation, spec: { network = false, shows = [] } }: SandboxOpen): SandboxSource => {
    // A view of its own is started when it is needed: to keep some waiting for each would take processes for nothing.
    if (shows.length > 0) return { take: () => start(isolation, network, shows), done: () => undefined, broken };
    const pool = poolOf(isolation, network);
    return { take: () => pool.take(), done: () => pool.refill(), broken };
  };

  return {
    isolation: "read_only",
    shortfall: "",
    run: (run) => runInSandbox(run, sourceFor(run)),
    open: (run) => openInSandbox(run, sourceFor(run)),
    [Symbol.dispose]: () => owned.dispose(),
  };
}
