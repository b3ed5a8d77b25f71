import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Executor, RunOutcome, RunSpec } from "../executor/executor.ts";
import { createLocalExecutor } from "../executor/local.ts";
import type { ProgramStarter } from "../executor/open-program.ts";
import { openSandbox } from "../executor/sandbox/open-sandbox.ts";
import { createSpawnerProcess } from "../executor/spawner-process.ts";

const BWRAP = "/usr/bin/bwrap";

/** Whether this machine has what a sandbox needs. Tests that need one are skipped where it has not; `.ci/run` installs it. */
export const HAS_BWRAP = process.platform === "linux" && existsSync(BWRAP);

/** An executor with a sandbox over folders of its own. */
export interface TestSandbox extends AsyncDisposable {
  executor: Executor & ProgramStarter;
  /** What holds the folders below. */
  folder: string;
  /** A folder that may be read and written. It holds `a.txt`, `.env`, and `state/`, which is the agent's. */
  work: string;
  /** A folder that may be read. It holds `b.txt`. */
  readable: string;
  /** A folder beside them. It holds `c.txt`. */
  outside: string;
  /** Runs a program in `work`, read-only where nothing else is asked for. */
  run(argv: readonly string[], spec?: Partial<RunSpec>): Promise<RunOutcome>;
}

/**
 * Opens a sandbox in a process's own spawner, as a device agent does.
 *
 * @param prepare puts more into `work` before the sandbox looks for what it has to hide.
 */
export async function openTestSandbox(prepare: (work: string) => void = () => undefined): Promise<TestSandbox> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-sandbox-test-"));
  const [work, readable, outside] = ["work", "readable", "outside"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(join(work, "state"), { recursive: true });
  await Promise.all([mkdir(readable), mkdir(outside)]);
  await Promise.all([
    writeFile(join(work, "a.txt"), "a\n"),
    writeFile(join(work, ".env"), "TOKEN=secret\n"),
    writeFile(join(work, "state", "device.key"), "secret\n"),
    writeFile(join(readable, "b.txt"), "b\n"),
    writeFile(join(outside, "c.txt"), "c\n"),
  ]);
  prepare(work);
  const spawner = createSpawnerProcess();
  const hidden = [join(work, "state")];
  const sandbox = await openSandbox({ spawner, bwrap: BWRAP, readRoots: [readable], writeRoots: [work], hidden });
  const executor = createLocalExecutor({ env: process.env, spawner, sandbox, killGraceMs: 200 });
  return {
    executor,
    folder,
    work,
    readable,
    outside,
    run: (argv, spec) =>
      executor.run({ argv, cwd: work, timeoutMs: 10_000, signal: NEVER, isolation: "read_only", ...spec }),
    async [Symbol.asyncDispose]() {
      sandbox[Symbol.dispose]();
      spawner[Symbol.dispose]();
      await rm(folder, { recursive: true });
    },
  };
}

const NEVER = new AbortController().signal;
