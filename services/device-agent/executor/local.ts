import { randomUUID } from "node:crypto";
import { closeSync } from "node:fs";
import { baseEnvironment, checkEnvironment } from "./environment.ts";
import type { Executor, RunSpec } from "./executor.ts";
import { follow, stopKind } from "./follow.ts";
import { openInput } from "./input-file.ts";
import { MARKER_NAME } from "./process-tree.ts";
import { programFolders } from "./program-folders.ts";
import { createProgramFinder, requireProgram, startFailed } from "./program-path.ts";
import { type Started, spawnWithPipes } from "./stdio.ts";

/** How the local executor is set up. */
export interface LocalExecutorOptions {
  /** The agent's environment. Only PATH, HOME, LANG, LC_ALL, TZ and USER reach programs. */
  env: Readonly<Record<string, string | undefined>>;
  /** Folders that callers may write. Absolute. No program is taken from them by name. Default none. */
  writeRoots?: readonly string[];
  /** How long a tree may take to end after SIGTERM, in milliseconds. Default 2000. */
  killGraceMs?: number;
}

/** An empty PATH would stand for the folder that a program runs in. */
const NO_FOLDER = "/nonexistent";

const NOTHING = { stdout: "", stderr: "", truncated: false, durationMs: 0, leftBehind: false, survivors: 0 };

/**
 * Runs programs as the agent's own user, each in its own session and process group, with nothing between it and the
 * machine. A run's processes end with the run: what is still in the group, or holds the output, when the program ends
 * is killed. A daemon that made its own session and let go of the output stays.
 */
export function createLocalExecutor(options: LocalExecutorOptions): Executor {
  const inherited = baseEnvironment(options.env);
  const programs = programFolders(inherited.PATH ?? "", options.writeRoots ?? []);
  // Programs look others up by name too, so they get the same folders.
  const base = { ...inherited, PATH: programs.folders.join(":") || NO_FOLDER };
  const finder = createProgramFinder(programs);
  const graceMs = options.killGraceMs ?? 2000;
  return {
    level: "none",
    droppedFolders: programs.dropped,
    resolve: (program) => finder.find(program),
    async run(spec) {
      if (spec.env !== undefined) checkEnvironment(spec.env);
      const name = spec.argv[0] ?? "";
      const program = requireProgram(finder, name);
      if (spec.signal.aborted) return { ...NOTHING, program, kind: stopKind(spec.signal) };
      const marker = randomUUID();
      try {
        const started = await start(program, spec, { ...base, ...spec.env, ...spec.toolEnv, [MARKER_NAME]: marker });
        return await follow(started, spec, { program, marker, graceMs });
      } catch (error: unknown) {
        finder.forget(name);
        throw error;
      }
    },
  };
}

/** Starts the program. Fault: START_FAILED{program,cause} where the operating system refuses; nothing ran then. */
async function start(program: string, spec: RunSpec, env: Record<string, string>): Promise<Started> {
  const name = spec.argv[0] ?? program;
  const input = spec.stdin?.length ? openInput(spec.stdin, randomUUID()) : "ignore";
  try {
    const options = { argv0: name, cwd: spec.cwd, env, detached: true, shell: false };
    return await spawnWithPipes(program, spec.argv.slice(1), options, input);
  } catch (error: unknown) {
    throw startFailed(name, causeOf(error), error);
  } finally {
    if (input !== "ignore") closeSync(input);
  }
}

function causeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : "unknown");
}
