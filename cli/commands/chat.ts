import type { Command } from "commander";
import { type ChatFlags, DEFAULT_MODEL, MODEL_LINES, runChat } from "../chat/run-chat.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection } from "../connection-options.ts";
import { parseCount, withJson } from "../list-options.ts";
import { gather } from "../repeatable.ts";

/** Registers `reeve chat`. */
export function registerChat(program: Command, context: CommandContext): void {
  withJson(
    withConnection(
      program.command("chat").argument("[prompt...]", "ask this once; left out: a conversation, or standard input"),
    ),
  )
    .description(
      `Let a model use the tools, as an agent. Its models:\n${MODEL_LINES.map((line) => `  ${line}\n`).join("")}` +
        "The agent's token: --token, REEVE_AGENT_TOKEN, REEVE_TOKEN, or the one that `reeve up` keeps for chat.",
    )
    .option("-d, --device <name>", "a device it may use; may be repeated. Default: all that are online", gather, [])
    .option("--tools <names>", "the tools it may use, comma-separated. Default: all")
    .option(
      "--model <name>",
      `the model, as provider/name. Default ${DEFAULT_MODEL}, or that of the provider whose key is set`,
    )
    .option("--max-turns <n>", "the most turns it may take for one prompt. Default 25", parseCount)
    .option("--wait <duration>", "how long a held call is waited for. Default 60s, at a terminal 1h")
    .option("--as-operator", "give the model an operator's rights. What would wait for a person then runs at once")
    .action((words: string[], flags: ChatFlags) => runChat(words, flags, context));
}
