import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { roleName } from "../../lib/auth/roles.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { findTarget } from "../find-target.ts";
import { visibleLine } from "../print/escape.ts";
import { dataDir, readKeptToken } from "../profile.ts";
import { openSession, type Session, sessionAt } from "../session.ts";
import type { Target, TargetFlags } from "../target.ts";

/** Who takes part in a chat. */
export interface ChatSessions {
  /** What the model calls with: an agent's. */
  model: Session;
  /** What the person decides with; undefined where nothing but the model's token is known. Never the model's own. */
  person: Session | undefined;
  close(): void;
}

/** Where to go, as whom. */
export interface ChatFlags extends TargetFlags {
  asOperator?: true;
}

const MAKE_ONE =
  "where the control plane runs: `reeve token create --role agent --name chat`; here: set REEVE_AGENT_TOKEN to what it prints";

/**
 * Finds the agent's token that the model calls with: --token, REEVE_AGENT_TOKEN, REEVE_TOKEN, the one that `reeve up` keeps
 * for chat, or the login. Asks the registry who that is, and throws a UsageError for anybody but an agent, because a model
 * does what it reads: with a person's rights, what would wait for the person runs at once.
 */
export async function openChatSessions(context: CommandContext, flags: ChatFlags): Promise<ChatSessions> {
  if (flags.asOperator) return openAsOperator(context, flags);
  const { target, from, rest } = await modelTarget(context, flags);
  for (const warning of target.warnings) context.stderr.write(`reeve: ${warning}\n`);
  const model = sessionAt(target);
  try {
    const { principalId, name, roles } = await model.registry.whoAmI({});
    if (!isOnlyAgent(roles)) throw noAgent(from, `${name} (${namesOf(roles)})`);
    context.stderr.write(`reeve: the model calls as ${visibleLine(name)} (${principalId}), an agent\n`);
  } catch (error: unknown) {
    model.close();
    throw error;
  }
  const person = await openSession(rest.context, rest.flags).catch(() => undefined);
  const close = () => {
    model.close();
    person?.close();
  };
  return { model, person, close };
}

async function openAsOperator(context: CommandContext, flags: TargetFlags): Promise<ChatSessions> {
  const person = await openSession(context, flags);
  try {
    const model = await person.operator.open();
    const { principalId, name, roles } = await model.registry.whoAmI({});
    context.stderr.write(
      `reeve: WARNING: the model calls as ${visibleLine(name)} (${principalId}), with the rights of: ${namesOf(roles)}.\n` +
        "reeve: WARNING: what would wait for a person runs at once, whatever the model has read.\n",
    );
    return { model, person, close: () => person.close() };
  } catch (error: unknown) {
    person.close();
    throw error;
  }
}

interface ModelTarget {
  target: Target;
  /** Where the token is from, in words. */
  from: string;
  /** What is left for the person to decide with, once the model has its token. */
  rest: { context: CommandContext; flags: TargetFlags };
}

async function modelTarget(context: CommandContext, flags: TargetFlags): Promise<ModelTarget> {
  const { token: flag, ...others } = flags;
  const { REEVE_AGENT_TOKEN: own, REEVE_TOKEN: general, ...env } = context.env;
  const withToken = async (token: string, from: string, rest: ModelTarget["rest"]) => {
    const given = { ...context, env: { ...env, REEVE_TOKEN: token } };
    return { target: await findTarget(given, flag ? flags : others), from, rest };
  };
  if (flag) return withToken(flag, "--token", { context, flags: others });
  if (own) return withToken(own, "REEVE_AGENT_TOKEN", { context, flags });
  const bare = { ...context, env };
  if (general) return withToken(general, "REEVE_TOKEN", { context: bare, flags });
  const target = await findTarget(context, flags).catch((cause: unknown) => {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), [MAKE_ONE], { cause });
  });
  const rest = { context, flags };
  if (target.origin === "login") return { target, from: "the login", rest };
  const kept = await readKeptToken(dataDir(context.env), "chat");
  if (kept === undefined) {
    throw new UsageError("this machine has no agent's token for chat", ["start `reeve up` again: it makes one"]);
  }
  return { target: { ...target, token: kept }, from: "chat's token", rest };
}

function isOnlyAgent(roles: readonly Role[]): boolean {
  return roles.length > 0 && roles.every((role) => role === Role.AGENT);
}

function noAgent(from: string, who: string): UsageError {
  return new UsageError(`chat's model calls as an agent, and ${from} is that of ${visibleLine(who)}`, [
    MAKE_ONE,
    "--as-operator gives the model an operator's rights all the same",
  ]);
}

function namesOf(roles: readonly Role[]): string {
  return roles.map((role) => roleName(role) ?? `role ${role}`).join(", ");
}
