import { type JsonObject, toJson } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { watchFanOut } from "../../client/fan-out.ts";
import {
  type FanOut,
  FanOutSchema,
  FanOutStateSchema,
  WatchFanOutResponseSchema,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { callLine } from "../call/call-line.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { ExitCode } from "../exit-codes.ts";
import { noteListed } from "../list-notes.ts";
import { type HistoryFlags, isSince, pageSize, withHistory, withJson } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument, jsonLine, wholeJson } from "../print/json.ts";
import { readPages } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import { ageText, timeAndAge } from "../print/time.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";
import { watchNotes } from "../watch-notes.ts";

interface OneFlags extends TargetFlags {
  json?: true;
}

/** Registers `reeve fanout` with list, show, watch and cancel; `reeve call --on` and `--device` start one. */
export function registerFanOut(program: Command, context: CommandContext): void {
  const fanOut = program
    .command("fanout")
    .description("List, show, watch and cancel fan-outs: calls to many devices, as `reeve call --on` starts them.");
  withHistory(withConnection(fanOut.command("list").description("List fan-outs, newest first."))).action(
    (flags: TargetFlags & HistoryFlags) => list(flags, context),
  );
  const one = (
    name: string,
    description: string,
    verb: (session: Session, id: string, flags: OneFlags, context: CommandContext) => Promise<void>,
  ) =>
    withJson(withConnection(fanOut.command(name).argument("<fanout>", "the fan-out's id")))
      .description(description)
      .action((id: string, flags: OneFlags) =>
        withSession(context, flags, (session) => verb(session, id, flags, context)),
      );
  one("show", "Show one fan-out: its tool, devices, waves, and how it ended.", async ({ fanOut }, fanOutId, flags) =>
    print((await fanOut.getFanOut({ fanOutId })).fanOut, flags, context),
  );
  one(
    "watch",
    "Follow one fan-out to its end, over restarts; with --json a line for each event. Exit code 9 if it fails.",
    watch,
  );
  one("cancel", "Cancel one fan-out: no further wave starts, and its calls are canceled.", async (session, id, flags) =>
    print((await session.fanOut.cancelFanOut({ fanOutId: id })).fanOut, flags, context),
  );
}

async function list(flags: TargetFlags & HistoryFlags, context: CommandContext): Promise<void> {
  const { limit, pageToken, since } = flags;
  const part = { limit, pageToken, isWanted: (one: FanOut) => isSince(one.createTime, since) };
  const { items, nextPageToken } = await withSession(context, flags, ({ fanOut }) =>
    readPages(async (token, room) => {
      const page = await fanOut.listFanOuts({ pageToken: token, pageSize: pageSize(room, 250) });
      return { items: page.fanOuts, nextPageToken: page.nextPageToken };
    }, part),
  );
  if (flags.json) {
    const fanOuts = items.map((one) => wholeJson(FanOutSchema, one));
    return void context.stdout.write(jsonDocument({ fanOuts, nextPageToken }));
  }
  const rows = items.map((one) => [
    enumName(FanOutStateSchema, one.status?.state),
    callLine(one.spec?.tool ?? "", one.spec?.params),
    devicesText(one),
    one.principalId,
    ageText(one.createTime, context.now()),
    one.id,
  ]);
  const colors = { STATE: { succeeded: "green", held: "yellow", running: "yellow", failed: "red" } } as const;
  const columns = ["STATE", "WHAT", "DEVICES", "BY", "STARTED", "FANOUT"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["FANOUT"], colors }));
  noteListed({ things: "fan-outs", shown: items.length, nextPageToken }, context);
}

async function watch({ fanOut }: Session, fanOutId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  // What came before the registry restarted comes again.
  const said = new Set<string>();
  const sayOnce = (text: string): void => {
    if (!said.has(text)) say(text, context);
    said.add(text);
  };
  for await (const response of watchFanOut(fanOut, fanOutId, watchNotes("the registry", context))) {
    const { event } = response;
    if (flags.json) context.stdout.write(jsonLine(toJson(WatchFanOutResponseSchema, response)));
    else if (event.case === "wave") sayOnce(`wave ${event.value.number}: ${event.value.devices.join(", ")}`);
    else if (event.case === "held") sayOnce(`held: reeve approval approve ${event.value.approvalId}`);
    else if (event.case === "summary") say(event.value.message, context);
    if (event.case === "summary" && !event.value.succeeded) context.setExitCode(ExitCode.TOOL_FAILED);
  }
}

function say(text: string, { stderr }: CommandContext): void {
  stderr.write(`reeve: ${visibleLine(text)}\n`);
}

function print(fanOut: FanOut | undefined, flags: OneFlags, context: CommandContext): void {
  if (fanOut === undefined) return;
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(FanOutSchema, fanOut)));
  const now = context.now();
  const { spec, status } = fanOut;
  const facts: JsonObject = {
    fanout: fanOut.id,
    state: enumName(FanOutStateSchema, status?.state),
    what: callLine(spec?.tool ?? "", spec?.params),
    selector: spec?.selector ?? "",
    "asked by": fanOut.principalId,
    asked: timeAndAge(fanOut.createTime, now),
    ended: timeAndAge(status?.endTime, now),
    purpose: spec?.purpose ?? "",
    approval: status?.approvalId ?? "",
    waves: status?.waves.map(({ number, devices }) => ({ number, devices: devices.join(", ") })) ?? [],
    summary: status?.summary?.message ?? "",
  };
  const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ""));
  context.stdout.write(readable(known, styleFor(context, context.stdout)));
}

function devicesText({ spec, status }: FanOut): string {
  const planned = status?.waves.flatMap(({ devices }) => devices) ?? [];
  return planned.length > 0 ? planned.join(" ") : spec?.selector || (spec?.devices.join(" ") ?? "");
}
