import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Command, Option } from "commander";
import {
  MissedFirings,
  MissedFiringsSchema,
  Overlap,
  OverlapSchema,
  type ScheduleSpec,
  ScheduleSpecSchema,
} from "../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { findTool } from "../call/find-tool.ts";
import { readInput } from "../call/input.ts";
import { callUsage, splitWords, type ToolFlags, withToolWords } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withOperator } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { enumValue } from "../print/enum-name.ts";
import type { TargetFlags } from "../target.ts";
import { printSchedule } from "./show.ts";

/** How `reeve schedule add` is typed. */
export const addUsage = `--name NAME --cron EXPRESSION|--every DURATION [options] -- call ${callUsage}`;

/** The options of `reeve schedule add`. */
export interface AddFlags extends TargetFlags {
  name: string;
  cron?: string;
  timeZone?: string;
  every?: string;
  missed?: string;
  overlap?: string;
  json?: true;
}

interface CallFlags extends ToolFlags {
  /** How long a call may wait for its device, in milliseconds. */
  queue?: number;
}

/** `reeve schedule add`. */
export async function addSchedule(words: readonly string[], flags: AddFlags, context: CommandContext): Promise<void> {
  const [dashes, verb, ...rest] = words;
  if (dashes?.startsWith("-") && dashes !== "--") throw new UsageError(`unknown option '${dashes}'`);
  if (dashes !== "--" || verb !== "call")
    throw new UsageError("what to call stands after --, and begins with call", [
      `usage: reeve schedule add ${addUsage}`,
    ]);
  const { words: called, flags: callFlags } = readCall(rest);
  const { device, tool: toolName, rest: own } = splitWords(called, false);
  if (device === undefined || toolName === undefined)
    throw new UsageError("DEVICE and TOOL are needed", [`usage: reeve schedule add ${addUsage}`]);
  const timing = timingFrom(flags);
  await withOperator(context, flags, async ({ registry, schedules }) => {
    const tool = await findTool(registry, device, toolName);
    const params = await readInput({ input: callFlags.input, rest: own }, tool, context);
    const { purpose = "", queue } = callFlags;
    const spec = create(ScheduleSpecSchema, {
      timing,
      device,
      tool: toolName,
      params,
      purpose,
      missed: enumValue<MissedFirings>(MissedFiringsSchema, flags.missed ?? "") ?? MissedFirings.SKIP,
      overlap: enumValue<Overlap>(OverlapSchema, flags.overlap ?? "") ?? Overlap.FORBID,
      ...(queue !== undefined && { queueTimeout: durationFromMs(queue) }),
    });
    printSchedule((await schedules.createSchedule({ name: flags.name, spec })).schedule, flags, context);
  });
}

/** Reads what stands after `call`, with the options that `reeve call` has for it. */
function readCall(words: readonly string[]): { words: string[]; flags: CallFlags } {
  let found: { words: string[]; flags: CallFlags } = { words: [], flags: {} };
  const queue = new Option("--queue <duration>", "how long a call may wait for its device").argParser((text: string) =>
    parseDuration(text, "--queue"),
  );
  withToolWords(new Command("call"))
    .addOption(queue)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action((tail: string[], flags: CallFlags) => {
      found = { words: tail, flags };
    })
    .parse([...words], { from: "user" });
  return found;
}

function timingFrom({ cron, every, timeZone }: AddFlags): ScheduleSpec["timing"] {
  if (cron !== undefined) {
    const zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    const timing = create(ScheduleSpecSchema, {
      timing: { case: "cron", value: { expression: cron, timeZone: zone } },
    });
    return timing.timing;
  }
  if (timeZone !== undefined) throw new UsageError("--time-zone is for --cron");
  if (every === undefined)
    throw new UsageError("--cron or --every says when", [`usage: reeve schedule add ${addUsage}`]);
  return { case: "every", value: durationFromMs(parseDuration(every, "--every")) };
}
