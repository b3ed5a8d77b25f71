import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

/** What a user would pick instead, or measures with, by npm package. Pinned, and no dependency of Reeve. */
const PACKAGES: Readonly<Record<string, string>> = {
  "@modelcontextprotocol/client": "2.4.0",
  "@modelcontextprotocol/server": "2.4.0",
  "mcp-hub": "4.2.1",
  "mcp-proxy": "6.7.19",
  supergateway: "4.0.0",
};

/** Kept between runs; out of version control. */
const FOLDER = join(import.meta.dirname, "installed");

const run = promisify(execFile);

/** A module of an installed peer, of which the compiler knows nothing. */
export async function peerModule<T>(name: string): Promise<T> {
  const path = createRequire(join(FOLDER, "package.json")).resolve(name);
  return (await import(pathToFileURL(path).href)) as T;
}

/**
 * Installs the peers where they are missing, without their install scripts. Returns the folder of their commands. Throws what
 * npm says where it cannot reach a registry.
 */
export async function installPeers(onStep: (text: string) => void): Promise<string> {
  const commands = join(FOLDER, "node_modules/.bin");
  const manifest = JSON.stringify({ private: true, dependencies: PACKAGES });
  const file = join(FOLDER, "package.json");
  if (existsSync(commands) && (await readFile(file, "utf8")) === manifest) return commands;
  onStep(`installing ${Object.keys(PACKAGES).join(", ")}`);
  await mkdir(FOLDER, { recursive: true });
  await writeFile(file, manifest);
  await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: FOLDER });
  return commands;
}
