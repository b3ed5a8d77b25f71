import { join } from "node:path";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { findTarget } from "../find-target.ts";
import { visibleLine } from "../print/escape.ts";
import { readOwnFile } from "../private-file.ts";
import { dataDir } from "../profile.ts";
import { type Session, sessionAt } from "../session.ts";
import type { TargetFlags } from "../target.ts";

/** Where `reeve mcp` goes, and as whom. */
export interface McpFlags extends TargetFlags {
  /** Whose token is used: the name that `reeve mcp config` kept it under. */
  agent?: string;
}

/** The file of a data folder with the token of one agent. */
export function agentTokenPath(folder: string, agent: string): string {
  return join(folder, "agents", `${agent}.token`);
}

/**
 * A session with an agent's token: --token, REEVE_AGENT_TOKEN, or the one that is kept for `agent`. Throws a UsageError for
 * any other principal: a model does what it reads, and what would wait for a person would run at once.
 */
export async function openAgentSession(context: CommandContext, flags: McpFlags): Promise<Session> {
  const { agent, token: flag, ...others } = flags;
  const token = flag ?? (context.env.REEVE_AGENT_TOKEN || (await keptToken(context, agent)));
  const env = { ...context.env, REEVE_TOKEN: token };
  const session = sessionAt(await findTarget({ env, now: context.now }, others));
  try {
    const { principalId, name, roles } = await session.registry.whoAmI({});
    if (roles.length === 0 || roles.some((role) => role !== Role.AGENT)) {
      throw new UsageError(`an MCP client calls as an agent, and this token is that of ${visibleLine(name)}`, [
        "`reeve mcp config CLIENT` makes one for the client, where the control plane runs",
      ]);
    }
    context.stderr.write(`reeve: mcp over standard input and output, as ${visibleLine(name)} (${principalId})\n`);
    return session;
  } catch (error: unknown) {
    session.close();
    throw error;
  }
}

async function keptToken({ env }: CommandContext, agent: string | undefined): Promise<string> {
  const isName = agent !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(agent);
  const kept = isName ? await readOwnFile(agentTokenPath(dataDir(env), agent)) : undefined;
  if (kept !== undefined) return Buffer.from(kept).toString("utf8").trim();
  throw new UsageError(
    agent === undefined ? "whose token is used?" : `there is no token for ${JSON.stringify(agent)}`,
    ["`reeve mcp config CLIENT` makes one and prints the client's configuration; elsewhere set REEVE_AGENT_TOKEN"],
  );
}
