import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";

/** The longest a call can be kept for its device: 7 days. */
const MAX_SECONDS = 604_800;

/** The seconds of `--queue`, rounded up; 0 where it was not given. Throws a UsageError. */
export function queueSeconds(text: string | undefined): number {
  if (text === undefined) return 0;
  const seconds = Math.ceil(parseDuration(text, "--queue") / 1000);
  if (seconds > 0 && seconds <= MAX_SECONDS) return seconds;
  throw new UsageError("--queue: a call can be kept for 1s to 7d");
}
