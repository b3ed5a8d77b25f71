import { readdir } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { OwnedFileError, readOwnedFile } from "../../../lib/files/owned-file.ts";
import type { AgentConfig, FileNote } from "./agent-config.ts";
import { type ParsedAgentFile, parseAgentFile } from "./parse-agent-file.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** The agents of a folder. */
export interface LoadedAgents {
  /** By name. Only those whose files have no problem. */
  readonly agents: ReadonlyMap<string, AgentConfig>;
  readonly problems: readonly FileNote[];
  readonly warnings: readonly FileNote[];
}

/** The folder of agents' files: REEVE_AGENTS_DIR, else agents in the data folder. Absolute. */
export function agentsFolder(env: Env, dataDir: string): string {
  return env.REEVE_AGENTS_DIR ? resolve(env.REEVE_AGENTS_DIR) : join(dataDir, "agents");
}

/**
 * Reads every .yaml file of a folder; one that does not exist has none. A file with a problem keeps no other agent from being
 * used; of two agents of one name neither is.
 */
export async function loadAgents(folder: string, env: Env): Promise<LoadedAgents> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
  const files = names.filter((name) => /\.ya?ml$/.test(name)).toSorted();
  const parsed = await Promise.all(files.map((name) => readAgentFile(join(folder, name), env)));
  const problems = parsed.flatMap((one) => one.problems);
  const byName = Map.groupBy(
    parsed.flatMap(({ agent }) => agent ?? []),
    ({ name }) => name,
  );
  const agents = new Map<string, AgentConfig>();
  for (const [name, [agent, ...others]] of byName) {
    if (agent !== undefined && others.length === 0) agents.set(name, agent);
    for (const { file } of others)
      problems.push({
        file,
        line: 1,
        message: `the agent ${name} stands in ${agent?.file}, too: give one another name`,
      });
  }
  return { agents, problems, warnings: parsed.flatMap((one) => one.warnings) };
}

/** Reads one agent's file. One that cannot be read, or that another user could have written, has that as its problem. */
export async function readAgentFile(file: string, env: Env): Promise<ParsedAgentFile> {
  const path = resolve(file);
  try {
    const text = await readOwnedFile(path, "agent's file");
    const name = basename(path, extname(path));
    return parseAgentFile(text, { file, folder: dirname(path), home: env.HOME, name, env });
  } catch (error: unknown) {
    if (!(error instanceof OwnedFileError)) throw error;
    const message = [error.message, ...error.fix].join(": ");
    return { agent: undefined, problems: [{ file, line: 1, message }], warnings: [] };
  }
}
