import { durationMs } from "@bufbuild/protobuf/wkt";
import { CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  type Firing,
  FiringSchema,
  FiringState,
  FiringStateSchema,
  MissedFiringsSchema,
  OverlapSchema,
  type Schedule,
  ScheduleSchema,
  type ScheduleSpec,
} from "../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { callLine } from "../call/call-line.ts";
import type { CommandContext } from "../command-context.ts";
import { withSession } from "../connection-options.ts";
import { ExitCode } from "../exit-codes.ts";
import { noteListed } from "../list-notes.ts";
import { type ListFlags, pageSize } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { namedId } from "../print/named-id.ts";
import { readPages } from "../print/pages.ts";
import { listTable } from "../print/table.ts";
import { ageText, durationText, timeAndAge, timeText } from "../print/time.ts";
import type { TargetFlags } from "../target.ts";

interface JsonFlag {
  json?: true;
}

/** `reeve schedule list`. */
export async function listSchedules(flags: TargetFlags & ListFlags, context: CommandContext): Promise<void> {
  const { items, nextPageToken } = await withSession(context, flags, ({ schedules }) =>
    readPages(
      async (token, room) => {
        const page = await schedules.listSchedules({ pageToken: token, pageSize: pageSize(room, 250) });
        return { items: page.schedules, nextPageToken: page.nextPageToken };
      },
      { limit: flags.limit },
    ),
  );
  if (flags.json) {
    const schedules = items.map((one) => wholeJson(ScheduleSchema, one));
    return void context.stdout.write(jsonDocument({ schedules, nextPageToken }));
  }
  const rows = items.map(({ name, spec, status }) => [
    name,
    whenText(spec),
    callLine(spec?.tool ?? "", spec?.params),
    spec?.device || "the default",
    status?.paused ? "paused" : ageText(status?.nextTime, context.now()),
    firingText(status?.firings[0]),
  ]);
  const columns = ["NAME", "WHEN", "WHAT", "DEVICE", "NEXT", "LAST"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["NAME"], colors: { NEXT: { paused: "yellow" } } }));
  noteListed(
    { things: "schedules", shown: items.length, nextPageToken, hint: "`reeve schedule add` makes one" },
    context,
  );
}

/** Prints one schedule with its newest firings. */
export function printSchedule(schedule: Schedule | undefined, { json }: JsonFlag, context: CommandContext): void {
  if (schedule === undefined) return;
  if (json) return void context.stdout.write(jsonDocument(wholeJson(ScheduleSchema, schedule)));
  const { name, spec, status } = schedule;
  const fields = {
    schedule: name,
    calls: `${callLine(spec?.tool ?? "", spec?.params)} on ${spec?.device || "the default device"}`,
    when: whenText(spec),
    next: status?.paused ? "paused" : timeAndAge(status?.nextTime, context.now()),
    "calls as": `schedule/${name}, a workflow`,
    purpose: spec?.purpose ?? "",
    missed: enumName(MissedFiringsSchema, spec?.missed),
    overlap: enumName(OverlapSchema, spec?.overlap),
    "made by": `${namedId(schedule.creatorName, schedule.creatorId)}, ${timeAndAge(schedule.createTime, context.now())}`,
  };
  const rows = Object.entries(fields).filter(([, value]) => value !== "");
  context.stdout.write(rows.map(([key, value]) => `${key.padEnd(10)}${visible(value)}\n`).join(""));
  const firings = status?.firings ?? [];
  if (firings.length === 0) return;
  const table = firings.map((firing) => [
    timeText(firing.scheduledTime),
    firing.manual ? "asked for" : "its time",
    firingText(firing),
    firing.callId,
  ]);
  context.stdout.write(
    `\n${listTable(["FIRED", "WHY", "WHAT CAME OF IT", "CALL"], table, context, { keep: ["CALL"] })}`,
  );
}

/** Prints what `reeve schedule run` has fired. */
export function printRun(firing: Firing | undefined, { json }: JsonFlag, context: CommandContext): void {
  if (firing === undefined) return;
  if (firing.state === FiringState.REFUSED) context.setExitCode(ExitCode.USAGE);
  if (json) return void context.stdout.write(jsonDocument(wholeJson(FiringSchema, firing)));
  context.stdout.write(
    `${visibleLine(`${firing.callId === "" ? "no call" : firing.callId}: ${firingText(firing)}`)}\n`,
  );
  if (firing.callId !== "") context.stderr.write(`reeve: \`reeve call watch ${firing.callId}\` follows it\n`);
}

/** The state of a firing's call, or why there is none. */
function firingText(firing: Firing | undefined): string {
  if (firing === undefined) return "";
  if (firing.message !== "") return `${enumName(FiringStateSchema, firing.state)}: ${firing.message}`;
  if (firing.callState === 0) return enumName(FiringStateSchema, firing.state);
  return enumName(CallStateSchema, firing.callState);
}

function whenText(spec: ScheduleSpec | undefined): string {
  const timing = spec?.timing;
  if (timing?.case === "every") return `every ${durationText(durationMs(timing.value))}`;
  return timing?.case === "cron" ? `${timing.value.expression} ${timing.value.timeZone || "UTC"}` : "";
}
