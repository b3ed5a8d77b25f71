import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** What a user would pick instead, by npm package. Pinned, and no dependency of Reeve. */
const PACKAGES: Readonly<Record<string, string>> = {
  "mcp-hub": "4.2.1",
  "mcp-proxy": "6.7.19",
  supergateway: "4.0.0",
};

/** Kept between runs; out of version control. */
const FOLDER = join(import.meta.dirname, "installed");

const run = promisify(execFile);

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
