import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { canAsk } from "../print/prompt.ts";
import type { Session } from "../session.ts";
import { exitCodeOfCall } from "./exit-code.ts";
import { findTool } from "./find-tool.ts";
import { helpHeldCall } from "./held.ts";
import { readInput } from "./input.ts";
import { watchInterrupts } from "./interrupts.ts";
import { createLiveOutput } from "./live-output.ts";
import { recordedCall } from "./recorded-call.ts";
import { runCall } from "./run-call.ts";
import { FAN_OUT_OPTIONS, type RunFlags } from "./run-options.ts";
import { showCall } from "./show-call.ts";
import { callJson } from "./show-receipt.ts";

/** How long a held call is waited for by default, in milliseconds; a person who is being asked gets an hour. */
const WAIT_MS = { unattended: 60_000, asked: 3_600_000 };

/** One call as it was typed. */
interface OneCall {
  session: Session;
  device: string;
  tool: string;
  rest: readonly string[];
  flags: RunFlags;
  context: CommandContext;
}

/** Calls a tool on one device, and shows how it goes and ends. */
export async function callFromWords({ session, device, tool: name, rest, flags, context }: OneCall): Promise<void> {
  const tool = await findTool(session.registry, device, name);
  const params = await readInput({ input: flags.input, rest }, tool, context);
  const live = createLiveOutput(context);
  const interrupts = watchInterrupts(context, "canceling the call; Ctrl-C again leaves at once");
  // Aborted when the call has left the held state, and with it any question on the terminal.
  let held = new AbortController();
  try {
    const order = {
      device,
      tool: name,
      params,
      callId: flags.callId,
      purpose: flags.purpose,
      waitMs: waitMsFor(flags, session, context),
      noWait: flags.wait === false,
      queueMs: flags.queue ?? 0,
    };
    const asked: Promise<void>[] = [];
    const ended = await runCall(order, {
      session,
      signal: interrupts.signal,
      onUpdate(report) {
        if (report.kind === "output" && !flags.json) live.print(report.stream, report.text);
        if (report.kind === "gap") context.stderr.write(`reeve: ${visibleLine(report.message)}\n`);
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
    if (flags.json) context.stdout.write(jsonDocument(callJson(await recordedCall(session, ended))));
    else showCall(ended, tool, live, context);
    context.setExitCode(exitCodeOfCall(ended));
  } finally {
    held.abort();
    interrupts.close();
  }
}

/** How long a held call is waited for, in milliseconds. */
export function waitMsFor({ wait }: RunFlags, { hasPolicy }: Session, context: CommandContext): number {
  if (typeof wait === "number") return wait;
  return canAsk(context) && hasPolicy ? WAIT_MS.asked : WAIT_MS.unattended;
}

/** Throws a UsageError for an option that means nothing for one call. */
export function refuseFanOutOptions(flags: RunFlags): void {
  const given: Readonly<Record<(typeof FAN_OUT_OPTIONS)[number], unknown>> = {
    wave: flags.wave,
    canary: flags.canary,
    "max-devices": flags.maxDevices,
    "stop-after": flags.stopAfter,
    "fanout-id": flags.fanoutId,
  };
  const stray = FAN_OUT_OPTIONS.find((name) => given[name] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} is for many devices: choose them with --on or --device`);
}
