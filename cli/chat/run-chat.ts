import { ConnectError } from "@connectrpc/connect";
import type { AgentResult } from "../../services/agent/loop/events.ts";
import type { Model } from "../../services/agent/providers/model.ts";
import { modelFor, PROVIDER_LINES } from "../../services/agent/providers/model-for.ts";
import { PROVIDERS } from "../../services/agent/providers/providers.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { askLine, canAsk } from "../print/prompt.ts";
import { readText } from "../read-text.ts";
import { type Conversation, createConversation } from "./conversation.ts";
import { type ChatSessions, openChatSessions, type ChatFlags as PrincipalFlags } from "./principal.ts";
import { exitCodeOfRun, runJson, runProblem, usageLine } from "./result.ts";

/** The options of `reeve chat`. */
export interface ChatFlags extends PrincipalFlags {
  device: string[];
  tools?: string;
  model?: string;
  maxTurns?: number;
  wait?: string;
  json?: true;
}

/** How a model of each provider is named and configured, for a person: a line each. */
export const MODEL_LINES = PROVIDER_LINES;

/** The model where none is named. */
export const DEFAULT_MODEL = `${PROVIDERS[0].name}/${PROVIDERS[0].defaultModel}`;

/** How long a held call is waited for by default, in milliseconds. */
const WAIT_MS = { unattended: 60_000, asked: 3_600_000 };

/** `reeve chat`: one prompt from the words or standard input, or a conversation at a terminal. */
export async function runChat(words: readonly string[], flags: ChatFlags, context: CommandContext): Promise<void> {
  const model = await modelOf(flags, context);
  const sessions = await openChatSessions(context, flags);
  try {
    await chat({ model, sessions, words, flags, context });
  } finally {
    sessions.close();
  }
}

interface Chat {
  model: Model;
  sessions: ChatSessions;
  words: readonly string[];
  flags: ChatFlags;
  context: CommandContext;
}

async function chat({ model, sessions, words, flags, context }: Chat): Promise<void> {
  const toolsAllowed = (flags.tools ?? "").split(",").filter((name) => name !== "");
  const toolset = await loadToolset(sessions.model.registry, { devices: flags.device, toolsAllowed });
  for (const warning of toolset.warnings) context.stderr.write(`reeve: ${visibleLine(warning)}\n`);
  const conversation = await createConversation({
    sessions,
    context,
    model,
    toolset,
    limits: flags.maxTurns === undefined ? {} : { maxTurns: flags.maxTurns },
    approvalWaitMs: waitOf(flags, context),
    text: flags.json ? { write: () => undefined } : context.stdout,
  });
  if (words.length > 0) return askOnce(conversation, words.join(" "), flags, context);
  if (context.stdin.isTTY !== true) return askOnce(conversation, await readText(context, "prompt"), flags, context);
  context.stderr.write(`${model.name} with ${toolset.tools.length} tools. An empty line or Ctrl-D ends it.\n`);
  await converse(conversation, context);
}

async function modelOf(flags: ChatFlags, { env }: CommandContext): Promise<Model> {
  try {
    return await modelFor(flags.model, env);
  } catch (cause: unknown) {
    throw new UsageError(ConnectError.from(cause).rawMessage, [...MODEL_LINES, "`reeve demo` works without one"], {
      cause,
    });
  }
}

function waitOf({ wait }: ChatFlags, context: CommandContext): number {
  if (wait !== undefined) return parseDuration(wait, "--wait");
  return canAsk(context) ? WAIT_MS.asked : WAIT_MS.unattended;
}

async function askOnce(
  conversation: Conversation,
  prompt: string,
  flags: ChatFlags,
  context: CommandContext,
): Promise<void> {
  if (prompt.trim() === "") throw new UsageError("there is no prompt");
  const result = await conversation.ask(prompt);
  if (flags.json) context.stdout.write(jsonDocument(runJson(result)));
  reportEnd(result, context);
  context.setExitCode(exitCodeOfRun(result));
}

function reportEnd(result: AgentResult, { stderr }: CommandContext): void {
  const problem = runProblem(result);
  if (problem !== undefined) stderr.write(`reeve: ${visibleLine(problem)}\n`);
  stderr.write(`reeve: ${usageLine(result)}\n`);
}

async function converse(conversation: Conversation, context: CommandContext): Promise<void> {
  for (;;) {
    const prompt = (await askLine(context, "\n> "))?.trim();
    if (prompt === undefined || prompt === "" || prompt === "exit") return;
    reportEnd(await conversation.ask(prompt), context);
  }
}
