import { type Command, Option } from "commander";
import { type Call, CallState, CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { callsTable, describeCall } from "../call/describe-call.ts";
import { exitCodeOfCall } from "../call/exit-code.ts";
import { createLiveOutput } from "../call/live-output.ts";
import { callJson } from "../call/show-receipt.ts";
import { watchCall } from "../call/watch-call.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { noteListed } from "../list-notes.ts";
import { type HistoryFlags, isSince, pageSize, withHistory, withJson } from "../list-options.ts";
import { enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, jsonLine } from "../print/json.ts";
import { readPages } from "../print/pages.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface OneFlags extends TargetFlags {
  json?: true;
}

interface CallListFlags extends TargetFlags, HistoryFlags {
  state?: string;
  device?: string;
  tool?: string;
}

/** Registers `reeve calls` with list, show, watch and cancel. */
export function registerCalls(program: Command, context: CommandContext): void {
  const calls = program.command("calls").description("List, show, watch and cancel calls.");
  const list = calls.command("list", { isDefault: true }).description("List calls, newest first. The default.");
  withHistory(withConnection(list))
    .addOption(new Option("--state <state>", "only calls in this state").choices(enumNames(CallStateSchema)))
    .option("-d, --device <name>", "only calls on this device")
    .option("-t, --tool <name>", "only calls of this tool")
    .action((flags: CallListFlags) => listCalls(flags, context));
  const one = (name: string, description: string) =>
    withJson(withConnection(calls.command(name).description(description).argument("<call>", "the call's id")));
  one("show", "Show one call with its arguments, decision, output and receipt.").action((id: string, flags: OneFlags) =>
    withSession(context, flags, (session) => show(session, id, flags, context)),
  );
  one("watch", "Follow one call to its end. Ends with the call's exit code; with --json a line for each event.").action(
    (id: string, flags: OneFlags) => withSession(context, flags, (session) => watch(session, id, flags, context)),
  );
  one("cancel", "Cancel a call: a running one is killed, a held one never starts.").action(
    (id: string, flags: OneFlags) => withSession(context, flags, (session) => cancel(session, id, flags, context)),
  );
}

async function listCalls(flags: CallListFlags, context: CommandContext): Promise<void> {
  const filter = {
    state: enumValue<CallState>(CallStateSchema, flags.state ?? "") ?? CallState.UNSPECIFIED,
    device: flags.device ?? "",
    tool: flags.tool ?? "",
  };
  const { limit, pageToken, since } = flags;
  const isWanted = (call: Call) => isSince(call.createTime, since);
  const { items: found, nextPageToken } = await withSession(context, flags, ({ registry }) =>
    readPages(
      async (token, room) => {
        const page = await registry.listCalls({ ...filter, pageToken: token, pageSize: pageSize(room, 250) });
        return { items: page.calls, nextPageToken: page.nextPageToken };
      },
      { limit, pageToken, isWanted },
    ),
  );
  if (flags.json) {
    context.stdout.write(jsonDocument({ calls: found.map(callJson), nextPageToken }));
    return;
  }
  context.stdout.write(callsTable(found, styleFor(context, context.stdout)));
  noteListed({ things: "calls", shown: found.length, nextPageToken }, context);
}

async function show({ registry }: Session, callId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const { call } = await registry.getCall({ callId });
  if (call !== undefined) print(call, flags, context);
}

async function watch(session: Session, callId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const live = createLiveOutput(context);
  const last = await watchCall(session, callId, (event) => {
    if (flags.json) context.stdout.write(jsonLine(event.json));
    else if (event.kind === "output") live.print(event.stream, event.text);
    else context.stderr.write(`reeve: ${event.text}\n`);
  });
  if (last !== undefined) context.setExitCode(exitCodeOfCall(last));
}

async function cancel(session: Session, callId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const { call } = await session.registry.cancelCall({ callId }).catch(async (error: unknown) => {
    // Another's call: that takes an operator.
    if (reasonOf(error) !== ErrorReason.ROLE_REQUIRED || session.operator.isOpen) throw error;
    const { registry } = await session.operator.open();
    return registry.cancelCall({ callId });
  });
  if (call !== undefined) print(call, flags, context);
}

function print(call: Call, flags: OneFlags, context: CommandContext): void {
  context.stdout.write(
    flags.json ? jsonDocument(callJson(call)) : describeCall(call, styleFor(context, context.stdout)),
  );
}
