import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timeText } from "../print/time.ts";

/** Why a device is locked, since when and by whom, as far as that is known: "lost, since 2026-11-22 10:00:00Z, by ann". */
export function lockText(lock: { why: string; lockTime?: Timestamp | undefined; lockedBy: string }): string {
  const since = lock.lockTime === undefined ? "" : `since ${timeText(lock.lockTime)}`;
  const by = lock.lockedBy === "" ? "" : `by ${lock.lockedBy}`;
  return [lock.why, since, by].filter((part) => part !== "").join(", ");
}
