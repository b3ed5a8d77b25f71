import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ScheduleSpecSchema } from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { timingOf } from "./timing.ts";

type TimingInit = NonNullable<MessageInitShape<typeof ScheduleSpecSchema>["timing"]>;

const at = (text: string) => Date.parse(text);
const timing = (init: TimingInit, createMs = 0) => timingOf(create(ScheduleSpecSchema, { timing: init }), createMs);
const cron = (expression: string, timeZone = "") => timing({ case: "cron", value: { expression, timeZone } });

/** The times after one, as many as are expected. */
function times(of: { next(afterMs: number): number }, after: string, count: number): string[] {
  const found: string[] = [];
  for (let ms = at(after); found.length < count; ) {
    ms = of.next(ms);
    found.push(new Date(ms).toISOString());
  }
  return found;
}

test("a cron expression is read in its time zone, UTC where none is named", () => {
  expect(times(cron("0 3 * * 1-5"), "2026-11-20T03:00:00Z", 2)).toEqual([
    "2026-11-23T03:00:00.000Z",
    "2026-11-24T03:00:00.000Z",
  ]);
  expect(times(cron("0 3 * * *", "America/New_York"), "2026-11-20T00:00:00Z", 1)).toEqual(["2026-11-20T08:00:00.000Z"]);
});

test("a time that the change to summer time leaves out is made up for, and one that comes twice counts once", () => {
  expect(times(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T12:00:00Z", 2)).toEqual([
    "2026-03-29T01:00:00.000Z",
    "2026-03-30T00:30:00.000Z",
  ]);
  expect(times(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00:00Z", 2)).toEqual([
    "2026-10-25T00:30:00.000Z",
    "2026-10-26T01:30:00.000Z",
  ]);
});

test("an interval is counted from the creation, whatever was missed", () => {
  const every = timing({ case: "every", value: { seconds: 60n } }, at("2026-01-01T00:00:10Z"));
  expect(times(every, "2026-01-01T00:00:10Z", 2)).toEqual(["2026-01-01T00:01:10.000Z", "2026-01-01T00:02:10.000Z"]);
  expect(times(every, "2026-01-01T07:30:00Z", 1)).toEqual(["2026-01-01T07:30:10.000Z"]);
});

test.each<[string, () => unknown, string, RegExp]>([
  ["no timing", () => timingOf(create(ScheduleSpecSchema), 0), "spec.timing", /required/],
  ["six fields", () => cron("* * * * * *"), "spec.cron.expression", /exactly 5 parts/],
  ["a wrong minute", () => cron("61 * * * *"), "spec.cron.expression", /minute: 61/],
  ["a day that never comes", () => cron("0 3 30 2 *"), "spec.cron.expression", /no time that ever comes/],
  [
    "an unknown zone",
    () => cron("0 3 * * *", "Europe/Berln"),
    "spec.cron.timeZone",
    /no IANA time zone: "Europe\/Berln"/,
  ],
])("%s is refused by the name of its field", (_, make, field, why) => {
  let thrown: unknown;
  try {
    make();
  } catch (error: unknown) {
    thrown = error;
  }
  expect(faultDetail(thrown)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field } });
  expect(String(thrown)).toMatch(why);
});
