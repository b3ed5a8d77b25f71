import { readPrivateFile } from "../../../lib/files/private-file.ts";
import type { AgentConfig } from "./agent-config.ts";

/**
 * The agent's own token; undefined where its file names none, and the service's own is meant. Throws, naming the place and never
 * its content, where there is no token, or where others may read its file: an agent never falls back to another's rights.
 */
export function agentToken(
  { name, token }: Pick<AgentConfig, "name" | "token">,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (token === undefined) return undefined;
  const text = "env" in token ? (env[token.env] ?? "") : readPrivateFile(token.file);
  const found = text.trim();
  if (/^rv_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/.test(found)) return found;
  const place = "env" in token ? `the variable ${token.env}` : `the file ${token.file}`;
  throw new Error(
    `the agent ${name} has no token: ${place} holds none, as \`reeve token create --role agent\` prints it`,
  );
}
