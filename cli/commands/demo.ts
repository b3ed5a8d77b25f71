import { realpath } from "node:fs/promises";
import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";

/** Registers `reeve demo`. */
export function registerDemo(program: Command, context: CommandContext): void {
  program
    .command("demo")
    .description(
      "Watch a model do a small job on this machine through the gate, in a temporary folder: it looks for what fills\n" +
        "the disk and writes a report. One call waits for your decision, one is blocked, and the record is verified.\n" +
        "Uses a provider's model when its key is set (such as ANTHROPIC_API_KEY) or it is named, and a scripted one otherwise.",
    )
    .option("--yes", "approve by itself what needs a human; also without a terminal")
    .option("--model <name>", "the model, as provider/name")
    .option("--folder <folder>", "the folder to look into", "/var")
    .action(async (flags: { yes?: boolean; model?: string; folder: string }) => {
      const { runDemo } = await import("../demo/run-demo.ts");
      context.setExitCode(
        await runDemo({ context, yes: flags.yes ?? false, model: flags.model, folder: await realpath(flags.folder) }),
      );
    });
}
