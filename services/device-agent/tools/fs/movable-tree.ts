import { lstatSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { HeldFolder } from "../../roots/held.ts";
import { refused, refuseRoots } from "../../roots/refusals.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { pathIn } from "./keep.ts";

const FROM = { access: "write", field: "path" } as const;
const TO = { access: "write", field: "to" } as const;

interface Options {
  context: ToolContext;
  /** The file system that the folder is on. */
  device: number;
}

/**
 * Refuses to move a folder in which there is a secret by its old path or its new one, a granted folder, the agent's own, or
 * another file system.
 *
 * @param into the folder's new path.
 */
export async function requireMovableTree(
  { folder, name }: { folder: HeldFolder; name: string },
  into: string,
  options: Options,
): Promise<void> {
  const { context, device } = options;
  const { roots } = context;
  throwIfAborted(context);
  using held = roots.openChild(folder, name, FROM);
  for (const inner of await readdir(held.at())) {
    const path = pathIn(held, inner);
    roots.checkChild(held, inner, FROM);
    roots.checkChild({ ...held, path: into }, inner, TO);
    refuseRoots(path, roots.granted, FROM, "moved");
    const stats = lstatSync(held.at(inner));
    if (stats.dev !== device)
      throw refused(path, FROM.field, "EXDEV", "is on another file system, which is mounted there");
    if (stats.isDirectory()) await requireMovableTree({ folder: held, name: inner }, `${into}/${inner}`, options);
  }
}
