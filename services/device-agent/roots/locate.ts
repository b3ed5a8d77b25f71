import { realpathSync } from "node:fs";
import { realPathOf } from "../../../lib/paths/real-path.ts";
import { isSecret } from "../../../lib/paths/secret-paths.ts";
import type { HeldFolder, Walker } from "./held.ts";
import { below, type Need, pathOf, segmentsOf } from "./lexical.ts";
import { outsideRoots } from "./refusals.ts";
import type { RootsOptions } from "./roots-options.ts";

/** A granted folder, held. */
export interface Root {
  write: boolean;
  /** The path as granted and the real path: a caller may use either. */
  names: string[][];
  real: string[];
  folder: HeldFolder;
}

/** Where a path lies. */
export interface Place {
  root: Root;
  /** The names below the root. */
  rest: string[];
  path: string;
}

/** Says from a path's text which root it lies in, and whether it may be used. Opens nothing but the roots. */
export interface Locator {
  readonly roots: readonly Root[];
  /** Finds the root. Fault: PATH_OUTSIDE_ROOTS{field,path}. */
  locate(path: string, need: Need, secretsToo?: boolean): Place;
  /** Refuses the agent's own folders and, with `secretsToo`, secrets, by the real path. */
  check(real: readonly string[], path: string, need: Need, secretsToo: boolean): void;
}

/** Holds the roots open. Throws an Error that names a root or work folder that cannot be used. */
export function createLocator(walker: Walker, options: RootsOptions): Locator {
  const roots = holdRoots(walker, options);
  // A folder that does not exist yet is denied by the name it will have.
  const denied = (options.deny ?? []).map((path) => segmentsOf(realPathOf(path) ?? path, "deny"));

  const check = (real: readonly string[], path: string, need: Need, secretsToo: boolean): void => {
    if (denied.some((folder) => below(folder, real) !== undefined)) {
      throw outsideRoots(
        path,
        need.field,
        "belongs to the device agent itself, which no tool that takes a path touches",
      );
    }
    if (secretsToo && isSecret(real))
      throw outsideRoots(path, need.field, "may hold secrets, which no tool that takes a path touches");
  };

  const locate = (path: string, need: Need, secretsToo = true): Place => {
    const segments = segmentsOf(path, need.field);
    for (const root of roots) {
      if (need.access === "write" && !root.write) continue;
      const rest = root.names.map((name) => below(name, segments)).find((found) => found !== undefined);
      if (rest === undefined) continue;
      check([...root.real, ...rest], path, need, secretsToo);
      return { root, rest, path };
    }
    const granted = roots.filter((root) => need.access === "read" || root.write).map((root) => pathOf(root.real));
    const list = granted.length === 0 ? "none" : granted.join(", ");
    const remedy = `the owner grants one with --${need.access} FOLDER where the device agent is started`;
    throw outsideRoots(path, need.field, `lies outside the folders granted to ${need.access} (${list}): ${remedy}`);
  };

  return { roots, locate, check };
}

function holdRoots(walker: Walker, options: RootsOptions): Root[] {
  const hold = (path: string, write: boolean): Root => {
    const real = realOrThrow(path, "root");
    const names = [segmentsOf(path, "root"), segmentsOf(real, "root")];
    return { write, names, real: segmentsOf(real, "root"), folder: walker.root(real) };
  };
  const roots = [...options.write.map((path) => hold(path, true)), ...options.read.map((path) => hold(path, false))];
  if (options.workDir === undefined) return roots;
  const work = segmentsOf(options.workDir, "workDir");
  if (!roots.some((root) => root.names.some((name) => below(name, work) !== undefined))) {
    throw new Error(`the work folder ${options.workDir} lies in no root`);
  }
  return roots;
}

function realOrThrow(path: string, what: string): string {
  try {
    return realpathSync.native(path);
  } catch (error: unknown) {
    throw new Error(`the ${what} ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}
