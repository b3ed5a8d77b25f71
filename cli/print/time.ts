import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

/** A point in time for people, in UTC and without fractions, such as "2026-03-01 12:30:05Z"; empty for none. */
export function timeText(time: Timestamp | undefined): string {
  if (time === undefined) return "";
  return new Date(timestampMs(time))
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

/** How long ago something was, or in how long it will be, such as "5m ago" or "in 2h"; empty for none. */
export function ageText(time: Timestamp | undefined, now: number): string {
  if (time === undefined) return "";
  const ms = now - timestampMs(time);
  return ms >= 0 ? `${shortDuration(ms)} ago` : `in ${shortDuration(-ms)}`;
}

/** A point in time with its distance from now: "2026-03-01 12:30:05Z (5m ago)". */
export function timeAndAge(time: Timestamp | undefined, now: number): string {
  return time === undefined ? "" : `${timeText(time)} (${ageText(time, now)})`;
}

function shortDuration(ms: number): string {
  if (ms < 60_000) return `${Math.round(ms / 1000)}s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)}m`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)}h` : `${Math.round(ms / 86_400_000)}d`;
}

/** A length of time for people, such as "340 ms", "2.5 s", "3 min", "2 h". */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(1))} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`;
}
