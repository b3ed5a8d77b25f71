import { durationMs } from "@bufbuild/protobuf/wkt";
import { Cron } from "croner";
import type { ScheduleSpec } from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { invalidField, missingField } from "../../../lib/fault/invalid-input.ts";

/** The times of a schedule. */
export interface Timing {
  /** The first time after that one, both in milliseconds since 1970. */
  next(afterMs: number): number;
}

/**
 * The times that a spec states. Those of a cron expression are of its time zone's clock: a time that a change of the clock leaves
 * out is made up for right after it, and one that comes twice counts once. Throws INVALID_INPUT, naming the field.
 *
 * @param createMs what `every` is counted from.
 */
export function timingOf({ timing }: Pick<ScheduleSpec, "timing">, createMs: number): Timing {
  switch (timing.case) {
    case "every": {
      const everyMs = durationMs(timing.value);
      return { next: (afterMs) => createMs + (Math.max(0, Math.floor((afterMs - createMs) / everyMs)) + 1) * everyMs };
    }
    case "cron":
      return cronTiming(timing.value.expression, timing.value.timeZone || "UTC");
    default:
      throw missingField("spec.timing");
  }
}

function cronTiming(expression: string, timezone: string): Timing {
  if (!isTimeZone(timezone))
    throw invalidField("spec.cron.timeZone", "time_zone", `is no IANA time zone: ${JSON.stringify(timezone)}`);
  let cron: Cron;
  try {
    cron = new Cron(expression, { timezone, mode: "5-part", paused: true });
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message.replace(/^CronPattern: /, "") : "it cannot be read";
    throw invalidField("spec.cron.expression", "cron", `is no cron expression of five fields: ${why}`, { cause });
  }
  const nextOf = (afterMs: number) => cron.nextRun(new Date(afterMs))?.getTime();
  if (nextOf(Date.UTC(2024, 0, 1)) === undefined)
    throw invalidField("spec.cron.expression", "cron", "names no time that ever comes");
  return { next: (afterMs) => nextOf(afterMs) ?? Number.MAX_SAFE_INTEGER };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
