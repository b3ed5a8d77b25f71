import { randomUUID } from "node:crypto";
import { closeSync, constants, existsSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunOutcome } from "../executor.ts";
import type { Spawner } from "../spawner.ts";
import type { Isolation } from "./isolation.ts";
import { findMasks } from "./masks.ts";
import { createPool, type Pool } from "./pool.ts";
import { probeSandbox } from "./probe.ts";
import { runInSandbox, type SandboxRun, sandboxUnavailable } from "./sandbox.ts";
import { seccompFilter } from "./seccomp.ts";
import { SYSTEM_CALLS } from "./system-calls.ts";
import { COPIED, type View, viewArguments } from "./view.ts";
import { startWaiting } from "./waiting.ts";

/** What the sandboxes of one device are made from. */
export interface SandboxOptions {
  spawner: Spawner;
  /** The absolute path of bwrap; undefined where there is none. */
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
}

/** How long a search for what has to be hidden counts, in milliseconds. */
const MASKS_MS = 60_000;

/** The sandbox of a machine that has none. */
export function noSandbox(shortfall: string): Sandbox {
  return {
    isolation: "none",
    shortfall,
    run: ({ isolation }) => Promise.reject(sandboxUnavailable(isolation, shortfall)),
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
  const sandbox = createSandbox({ ...options, bwrap }, seccompFilter(calls));
  const failure = await probeSandbox(sandbox, options.hidden);
  if (failure === undefined) return sandbox;
  sandbox[Symbol.dispose]();
  return noSandbox(failure);
}

function createSandbox(options: SandboxOptions & { bwrap: string }, filter: Buffer): Sandbox {
  const { spawner, bwrap, readRoots, writeRoots, hidden } = options;
  using opening = new DisposableStack();
  const filterFile = opening.adopt(heldFile(filter), closeSync);
  const copied = COPIED.filter((path) => existsSync(path));
  const pools = new Map<string, Pool>();
  let search: { at: number; masks: ReturnType<typeof findMasks> } | undefined;

  const masksNow = () => {
    if (search === undefined || performance.now() - search.at > MASKS_MS) {
      search = { at: performance.now(), masks: findMasks({ roots: [...readRoots, ...writeRoots], hidden }) };
    }
    return search.masks;
  };
  const start = async (isolation: View["isolation"], network: boolean, shows: readonly string[] = []) => {
    const masks = await masksNow();
    using files = new DisposableStack();
    const args = files.adopt(
      heldFile(viewArguments({ isolation, network, readRoots: [...readRoots, ...shows], writeRoots, masks }, copied)),
      closeSync,
    );
    const copies = copied.map((path) => files.adopt(openSync(path, O_RDONLY), closeSync));
    return await startWaiting({ spawner, bwrap, files: [args, filterFile, ...copies] });
  };
  const poolOf = (isolation: View["isolation"], network: boolean): Pool => {
    const key = `${isolation} ${network}`;
    const pool = pools.get(key) ?? createPool({ start: () => start(isolation, network) });
    pools.set(key, pool);
    return pool;
  };
  opening.defer(() => {
    for (const pool of pools.values()) pool[Symbol.dispose]();
  });
  const owned = opening.move();

  return {
    isolation: "read_only",
    shortfall: "",
    run(run) {
      const { network = false, shows = [] } = run.spec;
      const broken = (): void => {
        search = undefined;
        for (const each of pools.values()) each.clear();
      };
      // A view of its own is started when it is needed: to keep some waiting for each would take processes for nothing.
      if (shows.length > 0) {
        const take = () => start(run.isolation, network, shows);
        return runInSandbox(run, { take, done: () => undefined, broken });
      }
      const pool = poolOf(run.isolation, network);
      return runInSandbox(run, { take: () => pool.take(), done: () => pool.refill(), broken });
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** A file without a name that holds this. The caller closes it. */
function heldFile(content: string | Uint8Array): number {
  const path = join(tmpdir(), `reeve-sandbox-${randomUUID()}`);
  const write = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(write, content);
    return openSync(path, O_RDONLY | O_NOFOLLOW);
  } finally {
    unlinkSync(path);
    closeSync(write);
  }
}
