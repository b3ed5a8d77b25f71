import type { Command } from "commander";
import { createAnthropicModel, DEFAULT_MODEL } from "../../services/agent/providers/anthropic.ts";
import type { Model } from "../../services/agent/providers/model.ts";
import { loadToolset } from "../../services/agent/toolbox/toolset.ts";
import { type Conversation, createConversation } from "../chat/conversation.ts";
import { type ChatSessions, openChatSessions, type ChatFlags as PrincipalFlags } from "../chat/principal.ts";
import { exitCodeOfRun, runJson, runProblem } from "../chat/result.ts";
import { withConnection } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { parseCount, withJson } from "../list-options.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { askLine, canAsk } from "../print/prompt.ts";
import type { World } from "../world.ts";

interface ChatFlags extends PrincipalFlags {
  device: string[];
  tools?: string;
  model?: string;
  maxTurns?: number;
  wait?: string;
  json?: true;
}

/** How long a held call is waited for where nobody said, in milliseconds. */
const WAIT_MS = { unattended: 60_000, asked: 3_600_000 };

/** The longest prompt that is read from standard input, in bytes. */
const MAX_PROMPT = 1024 * 1024;

/** Registers `reeve chat`. */
export function registerChat(program: Command, world: World): void {
  withJson(
    withConnection(
      program.command("chat").argument("[prompt...]", "ask this once; left out: a conversation, or standard input"),
    ),
  )
    .description(
      "Let a model use the tools, as an agent. Needs ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL is honoured.\n" +
        "The agent's token: --token, REEVE_AGENT_TOKEN, REEVE_TOKEN, or the one that `reeve up` keeps for chat.",
    )
    .option("-d, --device <name>", "a device it may use; may be repeated. Default: all that are online", collect, [])
    .option("--tools <names>", "the tools it may use, comma-separated. Default: all")
    .option("--model <name>", `the model. Default ${DEFAULT_MODEL}`)
    .option("--max-turns <n>", "the most turns it may take for one prompt. Default 25", parseCount)
    .option("--wait <duration>", "how long a held call is waited for. Default 60s, at a terminal 1h")
    .option("--as-operator", "give the model an operator's rights. What would wait for a person then runs at once")
    .action((words: string[], flags: ChatFlags) => start(words, flags, world));
}

function collect(value: string, all: string[]): string[] {
  return [...all, value];
}

async function start(words: readonly string[], flags: ChatFlags, world: World): Promise<void> {
  const model = modelOf(flags, world);
  const sessions = await openChatSessions(world, flags);
  try {
    await chat({ model, sessions, words, flags, world });
  } finally {
    sessions.close();
  }
}

interface Chat {
  model: Model;
  sessions: ChatSessions;
  words: readonly string[];
  flags: ChatFlags;
  world: World;
}

async function chat({ model, sessions, words, flags, world }: Chat): Promise<void> {
  const toolsAllowed = (flags.tools ?? "").split(",").filter((name) => name !== "");
  const toolset = await loadToolset(sessions.model.registry, { devices: flags.device, toolsAllowed });
  for (const warning of toolset.warnings) world.stderr.write(`reeve: ${visibleLine(warning)}\n`);
  const conversation = await createConversation({
    sessions,
    world,
    model,
    toolset,
    limits: flags.maxTurns === undefined ? {} : { maxTurns: flags.maxTurns },
    approvalWaitMs: waitOf(flags, world),
    text: flags.json ? { write: () => undefined } : world.stdout,
  });
  if (words.length > 0) return askOnce(conversation, words.join(" "), flags, world);
  if (world.stdin.isTTY !== true) return askOnce(conversation, await readPrompt(world), flags, world);
  world.stderr.write(`${model.name} with ${toolset.tools.length} tools. An empty line or Ctrl-D ends it.\n`);
  await converse(conversation, world);
}

function modelOf(flags: ChatFlags, { env }: World): Model {
  const apiKey = env.ANTHROPIC_API_KEY;
  if (apiKey === undefined || apiKey === "")
    throw new UsageError("ANTHROPIC_API_KEY is not set", ["`reeve demo` works without one"]);
  const baseUrl = env.ANTHROPIC_BASE_URL;
  return createAnthropicModel({ apiKey, ...(baseUrl && { baseUrl }), ...(flags.model && { model: flags.model }) });
}

function waitOf({ wait }: ChatFlags, world: World): number {
  if (wait !== undefined) return parseDuration(wait, "--wait");
  return canAsk(world) ? WAIT_MS.asked : WAIT_MS.unattended;
}

async function askOnce(conversation: Conversation, prompt: string, flags: ChatFlags, world: World): Promise<void> {
  if (prompt.trim() === "") throw new UsageError("there is no prompt");
  const result = await conversation.ask(prompt);
  if (flags.json) world.stdout.write(jsonDocument(runJson(result)));
  const problem = runProblem(result);
  if (problem !== undefined) world.stderr.write(`reeve: ${visibleLine(problem)}\n`);
  world.setExitCode(exitCodeOfRun(result));
}

async function converse(conversation: Conversation, world: World): Promise<void> {
  for (;;) {
    const prompt = (await askLine(world, "\n> "))?.trim();
    if (prompt === undefined || prompt === "" || prompt === "exit") return;
    const problem = runProblem(await conversation.ask(prompt));
    if (problem !== undefined) world.stderr.write(`reeve: ${visibleLine(problem)}\n`);
  }
}

async function readPrompt({ stdin }: World): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MAX_PROMPT) throw new UsageError(`the prompt is longer than ${MAX_PROMPT} bytes`);
  }
  return Buffer.concat(chunks).toString("utf8").trim();
}
