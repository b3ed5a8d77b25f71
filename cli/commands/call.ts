import { type Command, InvalidArgumentError, Option } from "commander";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState, CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { callsTable, describeCall } from "../call/describe-call.ts";
import { exitCodeOfCall } from "../call/exit-code.ts";
import { callHelpText, showCallHelp } from "../call/help.ts";
import { createLiveOutput } from "../call/live-output.ts";
import { callFromWords, refuseFanOutOptions, waitMsFor } from "../call/run.ts";
import {
  callUsage,
  fanOutUsage,
  isFanOut,
  keepRest,
  type RunFlags,
  splitWords,
  withRunOptions,
} from "../call/run-options.ts";
import { callJson } from "../call/show-receipt.ts";
import { watchCall } from "../call/watch-call.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { runFanOut } from "../fan-out/run.ts";
import { followList } from "../follow-list.ts";
import { noteListed } from "../list-notes.ts";
import { type HistoryFlags, isSince, pageSize, withFollow, withHistory, withJson } from "../list-options.ts";
import { enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, jsonLine } from "../print/json.ts";
import { readPages } from "../print/pages.ts";
import { styleFor } from "../print/style.ts";
import type { TableParts } from "../print/table.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface OneFlags extends TargetFlags {
  json?: true;
}

interface WatchFlags extends OneFlags {
  /** The number of the first chunk of output. */
  from: number;
}

interface CallListFlags extends TargetFlags, HistoryFlags {
  state?: string;
  device?: string;
  tool?: string;
}

/** Registers `reeve call` with run, which is the default, list, show, watch and cancel. */
export function registerCall(program: Command, context: CommandContext): void {
  // Without help of its own: `reeve call DEVICE TOOL --help` is for `run`, which the parent must not answer.
  const call = keepRest(program.command("call"))
    .usage("[run|list|show|watch|cancel] ...")
    .description("Call a tool on a device; list, show, watch and cancel calls.")
    .helpOption(false);
  const run = withRunOptions(call.command("run", { isDefault: true }))
    .usage(`${callUsage}\n       reeve call run ${fanOutUsage}`)
    .description(
      "Call a tool on a device, or on many. `run` may be left out. Other verbs: list, show, watch, cancel.\n" +
        "The tool's flags come from its input schema.",
    )
    .addHelpText("after", callHelpText);
  run.action((words: string[], flags: RunFlags) =>
    flags.help ? showCallHelp(words, flags, run, context) : runFromWords(words, flags, context),
  );
  const list = call.command("list").helpOption("-h, --help", "show help").description("List calls, newest first.");
  withFollow(withHistory(withConnection(list)))
    .addOption(new Option("--state <state>", "only calls in this state").choices(enumNames(CallStateSchema)))
    .option("-d, --device <name>", "only calls on this device")
    .option("-t, --tool <name>", "only calls of this tool")
    .action((flags: CallListFlags) => listCalls(flags, context));
  const one = (
    name: string,
    description: string,
    verb: (session: Session, id: string, flags: WatchFlags, context: CommandContext) => Promise<void>,
  ) =>
    withJson(withConnection(call.command(name).helpOption("-h, --help", "show help")))
      .description(description)
      .argument("<call>", "the call's id")
      .action((id: string, flags: WatchFlags) =>
        withSession(context, flags, (session) => verb(session, id, flags, context)),
      );
  one("show", "Show one call with its arguments, decision, output and receipt.", show);
  const watchHelp =
    "Follow one call to its end, with all that it has printed. Ends with the call's exit code; with --json a line for each event.";
  one("watch", watchHelp, watchOneCall).addOption(
    new Option("--from <sequence>", "begin with this chunk of its output. Default: the first")
      .argParser(parseSequence)
      .default(0, "0"),
  );
  one("cancel", "Cancel a call: a running one is killed, a held one never starts.", cancelCall);
}

async function runFromWords(words: readonly string[], flags: RunFlags, context: CommandContext): Promise<void> {
  const many = isFanOut(flags);
  const { device, tool, rest } = splitWords(words, many);
  const connect = flags.asOperator ? withOperator : withSession;
  if (many) {
    if (tool === undefined) throw new UsageError("TOOL is needed", [`usage: reeve call ${fanOutUsage}`]);
    return connect(context, flags, (session) =>
      runFanOut({ session, tool, rest, flags, waitMs: waitMsFor(flags, session, context), context }),
    );
  }
  refuseFanOutOptions(flags);
  if (device === undefined || tool === undefined)
    throw new UsageError("DEVICE and TOOL are needed", [`usage: reeve call ${callUsage}`]);
  await connect(context, flags, (session) => callFromWords({ session, device, tool, rest, flags, context }));
}

async function listCalls(flags: CallListFlags, context: CommandContext): Promise<void> {
  const filter = {
    state: enumValue<CallState>(CallStateSchema, flags.state ?? "") ?? CallState.UNSPECIFIED,
    device: flags.device ?? "",
    tool: flags.tool ?? "",
  };
  const { limit, pageToken, since } = flags;
  const part = { limit, pageToken, isWanted: (call: CompleteCall) => isSince(call.createTime, since) };
  await withSession(context, flags, async ({ registry }) => {
    const read = async (token: string, room: number) => {
      const page = await registry.listCalls({ ...filter, pageToken: token, pageSize: pageSize(room, 250) });
      return { items: page.calls.map(completeCall), nextPageToken: page.nextPageToken };
    };
    if (flags.follow) {
      const parts: TableParts = {};
      const print = (calls: readonly CompleteCall[]) =>
        context.stdout.write(
          flags.json ? calls.map((call) => jsonLine(callJson(call))).join("") : callsTable(calls, context, parts),
        );
      return followList(
        { read, part, idOf: ({ id }: CompleteCall) => id, print: (calls) => void print(calls) },
        context,
      );
    }
    const { items: calls, nextPageToken } = await readPages(read, part);
    if (flags.json) return void context.stdout.write(jsonDocument({ calls: calls.map(callJson), nextPageToken }));
    context.stdout.write(callsTable(calls, context));
    noteListed({ things: "calls", shown: calls.length, nextPageToken }, context);
  });
}

async function show({ registry }: Session, callId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const { call } = await registry.getCall({ callId });
  if (call !== undefined) print(completeCall(call), flags, context);
}

/** Follows a call to its end, from a chunk of its output on. */
export async function watchOneCall(
  session: Session,
  callId: string,
  flags: WatchFlags,
  context: CommandContext,
): Promise<void> {
  const live = createLiveOutput(context);
  const last = await watchCall(session, callId, flags.from, (event) => {
    if (flags.json) context.stdout.write(jsonLine(event.json));
    else if (event.kind === "output") live.print(event.stream, event.text);
    else context.stderr.write(`reeve: ${event.text}\n`);
  });
  if (last !== undefined) context.setExitCode(exitCodeOfCall(last));
}

/** Cancels a call and shows what became of it; another's with an operator's rights. */
export async function cancelCall(
  session: Session,
  callId: string,
  flags: OneFlags,
  context: CommandContext,
): Promise<void> {
  const { call } = await session.registry.cancelCall({ callId }).catch(async (error: unknown) => {
    // Another's call: that takes an operator.
    if (reasonOf(error) !== ErrorReason.ROLE_REQUIRED || session.operator.isOpen) throw error;
    const { registry } = await session.operator.open();
    return registry.cancelCall({ callId });
  });
  if (call !== undefined) print(completeCall(call), flags, context);
}

/** Reads the number of a chunk. Throws InvalidArgumentError. */
export function parseSequence(text: string): number {
  const number = Number(text);
  if (/^\d{1,10}$/.test(text) && number < 2 ** 32) return number;
  throw new InvalidArgumentError("It must be the number of a chunk: a whole number, at least 0.");
}

function print(call: CompleteCall, flags: OneFlags, context: CommandContext): void {
  context.stdout.write(
    flags.json ? jsonDocument(callJson(call)) : describeCall(call, styleFor(context, context.stdout), context.now()),
  );
}
