import { isAbsolute, join } from "node:path";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { isProgram, isProgramName, PROGRAM_RULE } from "../../../lib/programs/run-input.ts";
import type { ProgramFolders } from "./program-folders.ts";

export interface ProgramFinder {
  /** The absolute path of a program, or undefined. What was found is kept; what was not is looked for again. */
  find(program: string): string | undefined;
  /** Forgets a program that could not be started. */
  forget(program: string): void;
}

/** A finder over folders that were chosen once. An absolute path is its own answer. */
export function createProgramFinder({ folders, isProgram }: ProgramFolders): ProgramFinder {
  const known = new Map<string, string>();
  return {
    find(program) {
      if (isAbsolute(program)) return program;
      const hit = known.get(program);
      if (hit !== undefined) return hit;
      if (!isProgramName(program)) return undefined;
      const found = folders.map((folder) => join(folder, program)).find(isProgram);
      if (found !== undefined) known.set(program, found);
      return found;
    },
    forget(program) {
      known.delete(program);
    },
  };
}

/** The path to start, or a fault: INVALID_INPUT for a relative path, START_FAILED where nothing is found. */
export function requireProgram(finder: ProgramFinder, program: string): string {
  if (!isProgram(program)) throw invalidField("argv[0]", "program", PROGRAM_RULE, { text: PROGRAM_RULE });
  const path = finder.find(program);
  if (path === undefined) throw startFailed(program, "not found on the PATH");
  return path;
}

/** The fault for a program that could not be started: nothing ran. */
export function startFailed(program: string, cause: string, error?: unknown): Error {
  const message = `${program} could not be started: ${cause}`;
  return fault(ErrorReason.START_FAILED, { program, cause }, { message, cause: error });
}
