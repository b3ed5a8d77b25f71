import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import { parseStrictJson } from "../lib/json/strict-json.ts";
import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";
import { readOwnFile, writePrivateFile } from "./private-file.ts";

/** Where a control plane is and how to be let in: what `reeve up` leaves for the other commands. */
export interface Profile {
  /** The registry's address, such as "http://127.0.0.1:7400". */
  registry: string;
  /** Policy's address. */
  policy: string;
  /** The socket of the registry, which only programs of this user can open. Default: none is known. */
  registrySocket?: string;
  /** The socket of policy. */
  policySocket?: string;
  /** The agent service's address. Default: it does not run. */
  agent?: string;
  /** Its socket. */
  agentSocket?: string;
  /** The bearer token of this machine's commands: it looks and calls under an agent's rules, and approves nothing. */
  token: string;
  /** The folder with the services' state, where the control plane runs on this machine. */
  stateDir: string;
  /** A file with the authorities that its https addresses are trusted by. Default: the system's. */
  caFile?: string;
}

type Env = CommandContext["env"];

/** The folder for everything of Reeve: REEVE_DATA_DIR, else $XDG_DATA_HOME/reeve, else ~/.local/share/reeve. Absolute. */
export function dataDir(env: Env): string {
  const named = env.REEVE_DATA_DIR;
  if (named !== undefined && named !== "") return resolve(named);
  const xdg = env.XDG_DATA_HOME;
  // The specification says to ignore a relative one.
  if (xdg?.startsWith("/")) return join(xdg, "reeve");
  return join(env.HOME || homedir(), ".local", "share", "reeve");
}

/** The profile file of a data folder. */
export function profilePath(folder: string): string {
  return join(folder, "profile.json");
}

/** The file of hashed tokens: REEVE_TOKENS_FILE, else tokens.json in the data folder. */
export function tokensPath(env: Env): string {
  return env.REEVE_TOKENS_FILE || join(dataDir(env), "tokens.json");
}

/** The profile of a data folder; undefined where there is none. Throws a UsageError for one that is damaged or open to others. */
export async function readProfile(folder: string): Promise<Profile | undefined> {
  const path = profilePath(folder);
  const bytes = await readOwnFile(path);
  return bytes === undefined ? undefined : profileOf(bytes, path);
}

/** Writes a profile, mode 0600, whole or not at all. Makes the folder, mode 0700. */
export function writeProfile(folder: string, profile: Profile): Promise<void> {
  return writePrivateFile(profilePath(folder), textOf(profile));
}

/** A token that a data folder keeps in a file: of `reeve chat`, and of the agent service's runs. */
export type KeptTokenName = "chat" | "runs" | "untrusted-runs";

/** The file of a data folder with such a token. */
export function keptTokenPath(folder: string, name: KeptTokenName): string {
  return join(folder, `${name}.token`);
}

/** Such a token; undefined where there is none. Throws a UsageError for a file that is open to others. */
export async function readKeptToken(folder: string, name: KeptTokenName): Promise<string | undefined> {
  const bytes = await readOwnFile(keptTokenPath(folder, name));
  return bytes === undefined ? undefined : Buffer.from(bytes).toString("utf8").trim();
}

/** Keeps such a token, mode 0600. */
export function writeKeptToken(folder: string, name: KeptTokenName, token: string): Promise<void> {
  return writePrivateFile(keptTokenPath(folder, name), `${token}\n`);
}

function textOf({ stateDir, caFile, registrySocket, policySocket, agentSocket, ...plain }: Profile): string {
  const sockets = { registry_socket: registrySocket, policy_socket: policySocket, agent_socket: agentSocket };
  return `${JSON.stringify({ ...plain, ...sockets, state_dir: stateDir, ca_file: caFile }, undefined, 2)}\n`;
}

function profileOf(bytes: Uint8Array, path: string): Profile {
  const damaged = (cause?: unknown) =>
    new UsageError(`${path} is not a profile`, ["remove it, and `reeve up` writes a new one"], { cause });
  let value: JsonValue;
  try {
    value = parseStrictJson(bytes);
  } catch (error: unknown) {
    throw damaged(error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw damaged();
  const { registry, policy, token, state_dir: stateDir, ca_file: caFile } = value;
  if (typeof registry !== "string" || typeof policy !== "string" || typeof token !== "string") throw damaged();
  const { registry_socket: registrySocket, policy_socket: policySocket, agent, agent_socket: agentSocket } = value;
  return {
    registry,
    policy,
    token,
    stateDir: typeof stateDir === "string" ? stateDir : "",
    ...(typeof registrySocket === "string" && { registrySocket }),
    ...(typeof policySocket === "string" && { policySocket }),
    ...(typeof agent === "string" && { agent }),
    ...(typeof agentSocket === "string" && { agentSocket }),
    ...(typeof caFile === "string" && { caFile }),
  };
}
