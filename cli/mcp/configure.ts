import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { isToolName } from "../../lib/auth/token.ts";
import type { TokenFile, TokenRequest } from "../../lib/auth/token-file.ts";
import { realPathOf } from "../../lib/paths/real-path.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { tokenFileForChange } from "../operator/token-file-guard.ts";
import { readOwnFile, writePrivateFile } from "../private-file.ts";
import { dataDir, readProfile } from "../profile.ts";
import { agentTokenPath } from "./agent-session.ts";
import { CLIENTS, type ClientConfig, mergeConfig, type Reach, TOKEN_VARIABLE } from "./client-config.ts";

/** The options of `reeve mcp config`. */
export interface ConfigFlags {
  http?: true;
  write?: true;
  /** The tools that the token allows. Empty: all. */
  tool: string[];
}

/**
 * `reeve mcp config`: makes an agent's token for a client, and prints the client's configuration, or writes it. A client that
 * starts `reeve mcp` gets no token in its configuration: it is kept in the data folder, and files of projects are shared.
 */
export async function configureClient(name: string, flags: ConfigFlags, context: CommandContext): Promise<void> {
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client === undefined) {
    throw new UsageError(`no client ${JSON.stringify(name)} is known`, [`known: ${Object.keys(CLIENTS).join(", ")}`]);
  }
  if (flags.write && !client.file.endsWith(".json")) {
    throw new UsageError(`${client.file} is yours to change`, ["leave --write out, and put what is printed there"]);
  }
  const folder = dataDir(context.env);
  const profile = await readProfile(folder);
  if (profile === undefined) {
    throw new UsageError("no control plane is known on this machine", ["start one with `reeve up`"]);
  }
  const tokens = await tokenFileForChange(context);
  if (flags.http) {
    const { token } = tokens.issueToken(tokenOf(name, flags));
    await show(client, { kind: "http", url: `${profile.registry}/mcp` }, flags, context);
    context.stderr.write(`reeve: the client needs its token in its environment; it is not shown again:\n`);
    context.stderr.write(`  export ${TOKEN_VARIABLE}=${token}\n`);
    return;
  }
  await replaceToken(tokens, name, folder, flags);
  await show(client, commandFor(name, context), flags, context);
}

/** Keeps a new token for the agent. The one before is revoked: nothing uses it any more. */
async function replaceToken(tokens: TokenFile, agent: string, folder: string, flags: ConfigFlags): Promise<void> {
  const path = agentTokenPath(folder, agent);
  const former = await readOwnFile(path);
  const { token } = tokens.issueToken(tokenOf(agent, flags));
  await writePrivateFile(path, `${token}\n`);
  if (former === undefined) return;
  const principal = tokens.authenticate(`Bearer ${Buffer.from(former).toString("utf8").trim()}`);
  if (principal !== undefined) tokens.revokeToken(principal.id);
}

function tokenOf(agent: string, { tool }: ConfigFlags): TokenRequest {
  const wrong = tool.find((name) => !isToolName(name));
  if (wrong !== undefined) throw new UsageError(`--tool: ${JSON.stringify(wrong)} is no name of a tool`);
  return { name: `mcp-${agent}`, roles: [Role.AGENT], ...(tool.length > 0 && { tools: tool }) };
}

/**
 * By paths: a client that was started from a desktop has another PATH than a terminal. By real ones: npx starts it by a link in
 * a cache that npm may clear.
 */
function commandFor(agent: string, { env }: CommandContext): Reach {
  const started = resolve(process.argv[1] ?? "reeve");
  const script = realPathOf(started) ?? started;
  const folder = env.REEVE_DATA_DIR;
  return {
    kind: "command",
    command: process.execPath,
    args: [script, "mcp", "--agent", agent],
    env: folder ? { REEVE_DATA_DIR: resolve(folder) } : {},
  };
}

async function show(client: ClientConfig, reach: Reach, flags: ConfigFlags, context: CommandContext): Promise<void> {
  const { title, file, text } = client;
  if (!flags.write) {
    context.stdout.write(text(reach));
    context.stderr.write(`reeve: for ${title}: put this into ${file}\n`);
    return;
  }
  const path = join(process.cwd(), file);
  const present = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw new UsageError(`${path} cannot be read`, [], { cause: error });
  });
  const merged = mergeConfig(present, text(reach));
  if (merged === undefined) {
    throw new UsageError(`${path} is no JSON object`, ["leave --write out, and put what is printed there"]);
  }
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, merged);
  context.stderr.write(`reeve: wrote ${path} for ${title}\n`);
}
