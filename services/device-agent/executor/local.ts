import { randomUUID } from "node:crypto";
import { closeSync } from "node:fs";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { reservedVariables } from "../../../lib/programs/run-input.ts";
import { createDirectSpawner } from "./direct-spawner.ts";
import type { Executor, RunSpec } from "./executor.ts";
import { follow, interrupted, stopKind } from "./follow.ts";
import { openHeldFile } from "./held-file.ts";
import { openInputPipe } from "./input-pipe.ts";
import { keepOpen, type OpenSpec, type ProgramStarter, type StartedOpen } from "./open-program.ts";
import { MARKER_NAME } from "./process-tree.ts";
import { programFolders } from "./program-folders.ts";
import { createProgramFinder, requireProgram, startFailed } from "./program-path.ts";
import { noSandbox, type Sandbox } from "./sandbox/open-sandbox.ts";
import { type Spawner, SpawnerGone, type Started } from "./spawner.ts";

/** How the local executor is set up. */
export interface LocalExecutorOptions {
  /** The agent's environment. Only PATH, HOME, LANG, LC_ALL, TZ and USER reach programs. */
  env: Readonly<Record<string, string | undefined>>;
  /** Folders that callers may write. Absolute. No program is taken from them by name. Default none. */
  writeRoots?: readonly string[];
  /** How long a tree may take to end after SIGTERM, in milliseconds. Default 1000: with what comes before and after, a stop takes less than 2 s. */
  killGraceMs?: number;
  /** What starts the programs. Default this process itself. */
  spawner?: Spawner;
  /** Where programs run that have to be kept apart. Default none: they are refused. */
  sandbox?: Sandbox;
}

/** An empty PATH would stand for the folder that a program runs in. */
const NO_FOLDER = "/nonexistent";

/** Larger than any pid of Linux (PID_MAX_LIMIT is 2^22), for a program of which only the marker is known. */
const NO_PID = 2 ** 22 + 1;

const NOTHING = { stdout: "", stderr: "", truncated: false, durationMs: 0, leftBehind: false, survivors: 0 };

/**
 * Runs programs as the agent's own user, each in its own session and process group; those that have to be kept apart in the
 * sandbox, the others with nothing between them and the machine. A run's processes end with the run: what is still in the group, or holds the output, when the program ends
 * is killed. A daemon that made its own session and let go of the output stays.
 */
export function createLocalExecutor(options: LocalExecutorOptions): Executor & ProgramStarter {
  const inherited = baseEnvironment(options.env);
  const programs = programFolders(inherited.PATH ?? "", options.writeRoots ?? []);
  // Programs look others up by name too, so they get the same folders.
  const base = { ...inherited, PATH: programs.folders.join(":") || NO_FOLDER };
  const finder = createProgramFinder(programs);
  const graceMs = options.killGraceMs ?? 1000;
  const { spawner = createDirectSpawner(), sandbox = noSandbox("it is not set up") } = options;
  return {
    isolation: sandbox.isolation,
    shortfall: sandbox.shortfall,
    droppedFolders: programs.dropped,
    resolve: (program) => finder.find(program),
    async run(spec) {
      if (spec.env !== undefined) checkEnvironment(spec.env);
      const name = spec.argv[0] ?? "";
      const program = requireProgram(finder, name);
      if (spec.signal.aborted) return { ...NOTHING, program, kind: stopKind(spec.signal) };
      const marker = randomUUID();
      try {
        const env = { ...base, ...spec.env, ...spec.toolEnv, [MARKER_NAME]: marker };
        const { isolation = "none" } = spec;
        if (isolation !== "none") return await sandbox.run({ spec, isolation, program, env, marker, graceMs });
        const started = await start(spawner, program, spec, env);
        return await follow(started, spec, { program, marker, graceMs });
      } catch (error: unknown) {
        if (error instanceof SpawnerGone) throw await interrupted(error, { pid: NO_PID, marker, graceMs });
        finder.forget(name);
        throw error;
      }
    },
    async open(spec) {
      const name = spec.argv[0] ?? "";
      const program = requireProgram(finder, name);
      const marker = randomUUID();
      const env = { ...base, ...spec.toolEnv, [MARKER_NAME]: marker };
      const { isolation = "none" } = spec;
      const started =
        isolation === "none"
          ? await startOpen(spawner, program, spec, env)
          : await sandbox.open({ spec, isolation, program, env });
      return keepOpen(started, { marker, graceMs });
    },
  };
}

/** Starts a program that stays. Fault: START_FAILED{program,cause}; nothing ran then. */
async function startOpen(
  spawner: Spawner,
  program: string,
  spec: OpenSpec,
  env: Record<string, string>,
): Promise<StartedOpen> {
  const argv0 = spec.argv[0] ?? program;
  try {
    const { read, stdin, release } = await openInputPipe(spawner.fifos);
    try {
      const request = { program, argv0, args: spec.argv.slice(1), cwd: spec.cwd, env, input: read };
      return { ...(await spawner.start(request)), stdin };
    } catch (error: unknown) {
      stdin.destroy();
      throw error;
    } finally {
      release();
    }
  } catch (error: unknown) {
    throw startFailed(argv0, causeOf(error), error);
  }
}

/** Starts the program. Fault: START_FAILED{program,cause} where the operating system refuses; nothing ran then. */
async function start(spawner: Spawner, program: string, spec: RunSpec, env: Record<string, string>): Promise<Started> {
  const argv0 = spec.argv[0] ?? program;
  const input = spec.stdin?.length ? openHeldFile(spec.stdin) : "ignore";
  try {
    return await spawner.start({ program, argv0, args: spec.argv.slice(1), cwd: spec.cwd, env, input });
  } catch (error: unknown) {
    if (error instanceof SpawnerGone) throw error;
    throw startFailed(argv0, causeOf(error), error);
  } finally {
    if (input !== "ignore") closeSync(input);
  }
}

function causeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : "unknown");
}

/** The variables of the agent's own environment that programs get. Everything else stays with the agent. */
const INHERITED = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER"] as const;

const DEFAULTS: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

/** What every program starts with, taken from the agent's environment by name. */
function baseEnvironment(agent: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const base: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = agent[name] || DEFAULTS[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
}

/** Refuses a caller's variable that would change which code runs. Fault: INVALID_INPUT{field,rule}. */
function checkEnvironment(env: Readonly<Record<string, string>>): void {
  const [first] = reservedVariables(Object.keys(env));
  if (first === undefined) return;
  const { name, message } = first;
  throw invalidField(`env["${name}"]`, "env.reserved", message, { text: message });
}
