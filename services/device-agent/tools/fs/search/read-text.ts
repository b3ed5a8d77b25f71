import type { HeldFile } from "../../../roots/held-file.ts";
import { decodeText, formOf } from "../encoding.ts";
import { readUpTo } from "../read-up-to.ts";

/** The largest file that is searched, in bytes. */
const LARGEST = 16 * 1024 * 1024;

/** How much of a file shows whether it is binary, in bytes. */
const LOOK = 8192;

/**
 * The text of a file: UTF-8, with what is invalid replaced, or what its byte order mark states. Undefined for a binary file,
 * which has a NUL near its beginning, and for one that is too large.
 */
export async function readText({ fd, stats }: HeldFile): Promise<string | undefined> {
  if (stats.size > LARGEST) return undefined;
  // What states no size is no file of a disk, and reading it may do something.
  if (stats.size === 0) return "";
  const look = await readUpTo(fd, 0, Math.min(LOOK, stats.size));
  const { encoding, mark } = formOf(look, "UTF-8");
  if (encoding === "UTF-8" && look.includes(0)) return undefined;
  const rest = await readUpTo(fd, look.length, Math.max(0, stats.size - look.length));
  const bytes = Buffer.concat([look, rest]).subarray(mark.length);
  return encoding === "UTF-8" ? bytes.toString("utf8") : decodeText(bytes, encoding);
}
