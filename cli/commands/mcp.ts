import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withConnection } from "../connection-options.ts";
import { type McpFlags, openAgentSession } from "../mcp/agent-session.ts";
import { CLIENTS } from "../mcp/client-config.ts";
import { type ConfigFlags, configureClient } from "../mcp/configure.ts";
import { gather } from "../repeatable.ts";

/** Registers `reeve mcp`. */
export function registerMcp(program: Command, context: CommandContext): void {
  const mcp = withConnection(program.command("mcp"))
    .description(
      "Serve an MCP client over standard input and output: the tools, as an agent.\n" +
        "The agent's token: --token, REEVE_AGENT_TOKEN, or the one that `reeve mcp config` keeps for --agent.",
    )
    .option("--agent <name>", "whose token is used")
    .option("-d, --device <name>", "a device it may use; may be repeated. Default: all that are online", gather, [])
    .option("--tools <names>", "the tools it may use, comma-separated. Default: all")
    .action((flags: ServeFlags) => serve(flags, context));
  mcp
    .command("config")
    .description(
      "Make an agent's token for a client, and print the client's configuration. Where the control plane runs.\n" +
        `Clients: ${Object.keys(CLIENTS).join(", ")}.`,
    )
    .argument("<client>", "the client")
    .option("--http", "by requests to /mcp, and not by starting `reeve mcp`; the token is shown, once")
    .option("--tool <name>", "a tool that its token allows; may be repeated. Default: all", gather, [])
    .option("--write", "write the configuration into its file of the project in this folder")
    .action((client: string, flags: ConfigFlags) => configureClient(client, flags, context));
}

interface ServeFlags extends McpFlags {
  device: string[];
  tools?: string;
}

async function serve(flags: ServeFlags, context: CommandContext): Promise<void> {
  const session = await openAgentSession(context, flags);
  try {
    const { serveMcp } = await import("../mcp/serve.ts");
    const toolsAllowed = (flags.tools ?? "").split(",").filter((name) => name !== "");
    await serveMcp(session, { devices: flags.device, toolsAllowed }, context);
  } finally {
    session.close();
  }
}
