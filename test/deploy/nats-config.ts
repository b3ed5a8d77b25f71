import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DEPLOY } from "./compose.ts";

/**
 * A NATS configuration of the repository as a test can start it: with other folders for those of a container. Where it
 * stores, and where it is watched, is left to the test's own server, and how often it syncs: older ones cannot learn.
 */
export function natsConfig(path: string, folders: Readonly<Record<string, string>>): string {
  const text = readFileSync(join(DEPLOY, path), "utf8").replace(/^ *(?:store_dir|http|sync_interval): .*\n/gm, "");
  return Object.entries(folders).reduce((moved, [from, to]) => moved.replaceAll(` ${from}/`, ` ${to}/`), text);
}
