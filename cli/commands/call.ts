import type { Command } from "commander";
import { callUsage, fanOutUsage, showCallHelp } from "../call/call-help.ts";
import { type CallWords, callOptions, readCallWords, takenNames } from "../call/call-words.ts";
import { exitCodeOfCall } from "../call/exit-code.ts";
import { findTool } from "../call/find-tool.ts";
import { helpHeldCall } from "../call/held.ts";
import { readInput } from "../call/input.ts";
import { watchInterrupts } from "../call/interrupts.ts";
import { createLiveOutput } from "../call/live-output.ts";
import { recordedCall } from "../call/recorded-call.ts";
import { runCall } from "../call/run-call.ts";
import { showCall } from "../call/show-call.ts";
import { callJson } from "../call/show-receipt.ts";
import type { CommandContext } from "../command-context.ts";
import { withOperator, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { runFanOut } from "../fan-out/run.ts";
import { choosesMany, FAN_OUT_WORDS } from "../fan-out/words.ts";
import { jsonDocument } from "../print/json.ts";
import { canAsk } from "../print/prompt.ts";
import { queueSeconds } from "../queue/queue-option.ts";
import type { Session } from "../session.ts";

/** How long a held call is waited for where nobody said, in milliseconds; a person who is being asked gets an hour. */
const WAIT_MS = { unattended: 60_000, asked: 3_600_000 };

/** Registers `reeve call`, which reads its own arguments: a tool's flags come from its schema. */
export function registerCall(program: Command, context: CommandContext): void {
  program
    .command("call")
    .usage(callUsage)
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .argument("[words...]")
    .action((argv: string[]) => call(argv, context));
}

async function call(argv: readonly string[], context: CommandContext): Promise<void> {
  context.setErrorFormat("text");
  const words = readCallWords(argv, callOptions);
  context.setErrorFormat(words.output);
  if (words.help) return showCallHelp(words, context);
  const { device, tool } = words;
  const many = choosesMany(words.extra);
  if (many && tool !== undefined) {
    return (words.asOperator ? withOperator : withSession)(context, words.target, (session) =>
      runFanOut({ session, tool, words, waitMs: waitMsFor(words, session, context), context }),
    );
  }
  if (many) throw new UsageError("TOOL is needed", [`usage: reeve call ${fanOutUsage}`]);
  refuseFanOutOptions(words);
  if (device === undefined || tool === undefined)
    throw new UsageError("DEVICE and TOOL are needed", [`usage: reeve call ${callUsage}`]);
  const run = words.asOperator ? withOperator : withSession;
  await run(context, words.target, (session) => callTool(session, device, tool, words, context));
}

async function callTool(
  session: Session,
  device: string,
  name: string,
  words: CallWords,
  context: CommandContext,
): Promise<void> {
  const tool = await findTool(session.registry, device, name);
  const params = await readInput(words, tool, context, takenNames());
  const live = createLiveOutput(context);
  const interrupts = watchInterrupts(context, "canceling the call; Ctrl-C again leaves at once");
  // Aborted when the call has left the held state, and with it any question on the terminal.
  let held = new AbortController();
  try {
    const order = {
      device,
      tool: name,
      params,
      callId: words.callId,
      purpose: words.purpose,
      waitMs: waitMsFor(words, session, context),
      noWait: words.noWait,
      queueSeconds: queueSeconds(words.extra.get("queue")),
    };
    const asked: Promise<void>[] = [];
    const ended = await runCall(order, {
      session,
      signal: interrupts.signal,
      onUpdate(report) {
        if (report.kind === "output" && words.output === "text") live.print(report.stream, report.text);
        if (report.kind === "state") held.abort();
        if (report.kind !== "held") return;
        held = new AbortController();
        const { callId } = report;
        const signal = AbortSignal.any([held.signal, interrupts.signal]);
        const takeBack = () => session.registry.cancelCall({ callId });
        const options = { session, context, signal, takeBack };
        asked.push(helpHeldCall({ id: callId, approvalId: report.approvalId }, options));
      },
    });
    held.abort();
    await Promise.all(asked);
    if (words.output === "json") context.stdout.write(jsonDocument(callJson(await recordedCall(session, ended))));
    else showCall(ended, tool, live, context);
    context.setExitCode(exitCodeOfCall(ended));
  } finally {
    held.abort();
    interrupts.close();
  }
}

function waitMsFor({ waitMs }: CallWords, { hasPolicy }: Session, context: CommandContext): number {
  return waitMs ?? (canAsk(context) && hasPolicy ? WAIT_MS.asked : WAIT_MS.unattended);
}

function refuseFanOutOptions({ extra }: CallWords): void {
  const stray = FAN_OUT_WORDS.find((name) => extra.has(name));
  if (stray !== undefined) throw new UsageError(`--${stray} is for many devices: choose them with --on or --devices`);
}
