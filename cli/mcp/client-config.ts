import type { JsonObject } from "@bufbuild/protobuf";

/** How a client reaches the tools: it starts a program, or sends requests. */
export type Reach =
  | { kind: "command"; command: string; args: readonly string[]; env: Readonly<Record<string, string>> }
  | { kind: "http"; url: string };

/** The environment variable in which a client that sends requests has its agent's token. */
export const TOKEN_VARIABLE = "REEVE_AGENT_TOKEN";

/** A client whose configuration is known. */
export interface ClientConfig {
  /** What it is called. */
  title: string;
  /** The file, from the project's folder; in the home folder where it begins with "~/". */
  file: string;
  /** The configuration as that file's text has it; merged into a JSON file by `mergeConfig`. */
  text(reach: Reach): string;
}

/** The clients, by the name that `reeve mcp config` takes. */
export const CLIENTS: Readonly<Record<string, ClientConfig>> = {
  "claude-code": {
    title: "Claude Code",
    file: ".mcp.json",
    text: (reach) => json({ mcpServers: { reeve: withType(reach, reference(TOKEN_VARIABLE)) } }),
  },
  cursor: {
    title: "Cursor",
    file: ".cursor/mcp.json",
    text: (reach) => json({ mcpServers: { reeve: entry(reach, reference(`env:${TOKEN_VARIABLE}`)) } }),
  },
  vscode: {
    title: "VS Code",
    file: ".vscode/mcp.json",
    text(reach) {
      const inputs = [
        { type: "promptString", id: "reeve", description: "The agent's token for Reeve", password: true },
      ];
      const servers = { reeve: withType(reach, reference("input:reeve")) };
      return json(reach.kind === "http" ? { inputs, servers } : { servers });
    },
  },
  codex: { title: "Codex", file: "~/.codex/config.toml", text: toml },
};

/** The text of a JSON file with another's entries put in; what it holds besides them stays. Undefined where it is no JSON object. */
export function mergeConfig(present: string, added: string): string | undefined {
  const [old, more] = [objectIn(present), objectIn(added)];
  return old && more && json(merged(old, more));
}

function merged(old: JsonObject, more: JsonObject): JsonObject {
  const entries = Object.entries(more).map(([key, value]) => {
    const before = Object.hasOwn(old, key) ? old[key] : undefined;
    return [key, isObject(before) && isObject(value) && key !== "reeve" ? merged(before, value) : value] as const;
  });
  return { ...old, ...Object.fromEntries(entries) };
}

/** What a client puts the value of a variable in place of. */
function reference(name: string): string {
  return `\${${name}}`;
}

function entry(reach: Reach, token: string): JsonObject {
  if (reach.kind === "http") return { url: reach.url, headers: { Authorization: `Bearer ${token}` } };
  const { command, args, env } = reach;
  return { command, args: [...args], ...(Object.keys(env).length > 0 && { env: { ...env } }) };
}

function withType(reach: Reach, token: string): JsonObject {
  return { type: reach.kind === "http" ? "http" : "stdio", ...entry(reach, token) };
}

// A basic string of TOML takes the escapes that JSON writes.
function toml(reach: Reach): string {
  const lines =
    reach.kind === "http"
      ? [`url = ${JSON.stringify(reach.url)}`, `bearer_token_env_var = ${JSON.stringify(TOKEN_VARIABLE)}`]
      : [`command = ${JSON.stringify(reach.command)}`, `args = ${JSON.stringify(reach.args)}`];
  const env = reach.kind === "command" ? Object.entries(reach.env) : [];
  const variables = env.map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  return [
    "[mcp_servers.reeve]",
    ...lines,
    "tool_timeout_sec = 120",
    ...(variables.length > 0 ? ["", "[mcp_servers.reeve.env]", ...variables] : []),
    "",
  ].join("\n");
}

function json(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
