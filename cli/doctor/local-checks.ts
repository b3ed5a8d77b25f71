import { stat } from "node:fs/promises";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import type { CommandContext } from "../command-context.ts";
import { dataDir, profilePath, readProfile, tokensPath } from "../profile.ts";
import { checkExposed } from "./exposed-files.ts";
import { broken, type Finding, note, ok } from "./finding.ts";
import { checkManifest } from "./manifest-check.ts";

/** The oldest Node that Reeve runs on, and the one that it is tested on most. */
const NODE = { oldest: 24, best: 26 };

/** Everything that can be checked without the network. */
export async function checkLocally(context: CommandContext): Promise<Finding[]> {
  return [
    checkNode(process.versions.node),
    await checkDataFolder(context),
    await checkProfile(context),
    await checkTokens(context),
    ...(await checkManifest(context)),
    ...(await checkExposed(dataDir(context.env))),
  ];
}

/** Whether this Node will do. */
export function checkNode(version: string): Finding {
  const major = Number.parseInt(version, 10);
  if (major < NODE.oldest) return broken("node", `version ${version} is too old`, `use Node ${NODE.best}`);
  if (major < NODE.best) return note("node", `version ${version}`, `Node ${NODE.best} is what Reeve is tested on most`);
  return ok("node", `version ${version}`);
}

async function checkDataFolder({ env }: CommandContext): Promise<Finding> {
  const folder = dataDir(env);
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) return note("data folder", `${folder} does not exist`, "`reeve up` makes it");
  if (!found.isDirectory()) return broken("data folder", `${folder} is no folder`, "set REEVE_DATA_DIR to one");
  if ((found.mode & 0o077) !== 0) {
    return broken(
      "data folder",
      `${folder} is open to other users, and holds keys`,
      `make it private: chmod 700 ${folder}`,
    );
  }
  return ok("data folder", folder);
}

async function checkProfile({ env }: CommandContext): Promise<Finding> {
  const folder = dataDir(env);
  try {
    const profile = await readProfile(folder);
    if (profile !== undefined) return ok("profile", `${profilePath(folder)}, for ${profile.registry}`);
    const instead = env.REEVE_REGISTRY_URL ? "; REEVE_REGISTRY_URL is used" : "";
    return note("profile", `there is none${instead}`, "`reeve up` writes one");
  } catch (error: unknown) {
    return broken("profile", messageOf(error), "make it private, or let `reeve up` write a new one");
  }
}

async function checkTokens({ env, now }: CommandContext): Promise<Finding> {
  const path = tokensPath(env);
  if ((await stat(path).catch(() => undefined)) === undefined) return note("tokens", "no token file on this machine");
  try {
    const tokens = createTokenFile(path).listTokens();
    const expired = tokens.filter(({ expires }) => expires !== undefined && Date.parse(expires) <= now());
    const text = `${tokens.length} in ${path}`;
    if (expired.length === 0) return ok("tokens", text);
    return note("tokens", `${text}, ${expired.length} of them expired`, "`reeve token revoke ID` takes one away");
  } catch (error: unknown) {
    return broken("tokens", messageOf(error));
  }
}

/** An error's message, for a finding. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
