import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { HeldFolder } from "../../roots/held.ts";
import { outsideRoots } from "../../roots/refusals.ts";
import type { ToolContext } from "../tool.ts";

/** What a place that git writes in must be granted for. */
export const WRITE = { access: "write", field: "path" } as const;

/** Folders of a git folder whose entries git follows when it writes. */
const WRITTEN = ["objects", "refs", "logs"];

/**
 * Checks that a git folder keeps to the granted roots: it lies in one, nothing that git writes through is a symbolic
 * link, and the stores that it borrows objects from lie in a root too. Git itself follows all of these wherever they
 * lead. Fault: PATH_OUTSIDE_ROOTS{field,path}.
 */
export function requireInside({ roots }: Pick<ToolContext, "roots">, gitDir: string): void {
  using folder = roots.openFolder(gitDir, WRITE);
  refuseLinks(folder);
  for (const name of WRITTEN) {
    if (!has(folder, name)) continue;
    using written = roots.openChild(folder, name, WRITE);
    refuseLinks(written);
    if (name !== "objects" || !has(written, "info")) continue;
    using info = roots.openChild(written, "info", WRITE);
    refuseLinks(info);
    for (const store of borrowedStores(written, info)) {
      using held = roots.openFolder(store, { access: "read", field: "path" });
      void held;
    }
  }
}

function refuseLinks(folder: HeldFolder): void {
  const link = readdirSync(folder.at(), { withFileTypes: true }).find((entry) => entry.isSymbolicLink());
  if (link === undefined) return;
  const path = join(folder.path, link.name);
  throw outsideRoots(path, WRITE.field, "is a symbolic link, which git would follow");
}

function has(folder: HeldFolder, name: string): boolean {
  return readdirSync(folder.at()).includes(name);
}

/** The folders in objects/info/alternates (gitrepository-layout(5)), absolute. */
function borrowedStores(objects: HeldFolder, info: HeldFolder): string[] {
  if (!has(info, "alternates")) return [];
  return readFileSync(info.at("alternates"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => resolve(objects.path, line));
}
