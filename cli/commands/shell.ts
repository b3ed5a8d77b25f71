import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withJson } from "../list-options.ts";
import { gather } from "../repeatable.ts";
import type { CheckFlags } from "../shell/check.ts";

/** Registers `reeve shell` with check. */
export function registerShell(program: Command, context: CommandContext): void {
  const shell = program.command("shell").description("Look at shell text without running it.");
  withJson(shell.command("check").argument("[text]", "the shell text; - or nothing reads it from the standard input"))
    .description(
      "Say what shell text comes to: allow (it only looks, and this plan would run), ask (a person decides), block (refused\n" +
        "whatever anybody's rights) or reject (too much to look at), and why. Nothing runs, no service is asked. Policy decides\n" +
        "with the same analysis, and may be stricter. Exit code 0 for allow, 4 for ask, 3 for block, 2 for reject.",
    )
    .option("--cwd <folder>", "the folder that it would run in")
    .option("--root <folder>", "a folder that may be read; may be given several times. Default: all", gather, [])
    .option("--jsonl", 'read {"id": …, "cmd": "…"} lines and print {"id", "verdict", "rules", "ms"} lines')
    .action(async (text: string | undefined, flags: CheckFlags) =>
      (await import("../shell/check.ts")).check(text, flags, context),
    );
}
