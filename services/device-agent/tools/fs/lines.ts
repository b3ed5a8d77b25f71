import { invalidField } from "../../../../lib/fault/invalid-input.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { type Encoding, isWide } from "./encoding.ts";
import { readUpTo } from "./read-up-to.ts";

const CHUNK = 1024 * 1024;

const LINE_END = 0x0a;

/**
 * Where a line starts, in bytes; the file's end where it has fewer. The first is 1. Fault: INVALID_INPUT for an encoding in
 * which a byte does not show where a line ends.
 */
export async function findLine(
  fd: number,
  line: number,
  encoding: Encoding,
  context: Pick<ToolContext, "signal" | "timeoutMs">,
): Promise<number> {
  if (isWide(encoding)) throw invalidField("firstLine", "encoding", "cannot be counted in UTF-16: use offset");
  let [passed, start] = [1, 0];
  while (passed < line) {
    throwIfAborted(context);
    const chunk = await readUpTo(fd, start, CHUNK);
    if (chunk.length === 0) return start;
    let from = 0;
    while (passed < line) {
      const end = chunk.indexOf(LINE_END, from);
      if (end < 0) break;
      passed++;
      from = end + 1;
    }
    start += passed < line ? chunk.length : from;
  }
  return start;
}

/** The first lines of a slice; all of it where `lines` is 0. */
export function headOfLines(slice: Buffer, lines: number): Buffer {
  if (lines === 0) return slice;
  let end = 0;
  for (let passed = 0; passed < lines; passed++) {
    const next = slice.indexOf(LINE_END, end);
    if (next < 0) return slice;
    end = next + 1;
  }
  return slice.subarray(0, end);
}
