import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { type AgentFlags, agentEnvironment } from "./agent-options.ts";
import { readJoinToken } from "./join-token.ts";

/** `reeve device join`: enrolls this machine, and resolves when an operator has confirmed it. */
export async function joinMachine(source: string, flags: AgentFlags, context: CommandContext): Promise<void> {
  const token = await readJoinToken(source, context);
  const { joinDevice } = await import("../../services/device-agent/main.ts");
  const leaving = new AbortController();
  const stop = context.onInterrupt(() =>
    leaving.abort(new UsageError("joining was given up; the token can be used again")),
  );
  try {
    const { name } = await joinDevice(agentEnvironment(flags, context), {
      token,
      notKept: new Set(context.configFile?.values.keys()),
      onPending: ({ id, name: pending, fingerprint }) =>
        context.stderr.write(
          `${pending} waits to be confirmed. This machine's fingerprint is\n\n  ${fingerprint}\n\n` +
            `An operator compares it and lets the device in, from anywhere:\n\n  reeve enrollment confirm ${id}\n\n`,
        ),
      onRetry: (error) => context.stderr.write(`reeve: ${visibleLine(error.rawMessage)}; trying again\n`),
      signal: leaving.signal,
    });
    context.stderr.write(`reeve: this machine is the device ${visibleLine(name)}; \`reeve serve device\` runs it\n`);
  } finally {
    stop();
  }
}
