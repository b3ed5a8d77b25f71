import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReadRequest, ReadResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { maskCutSecrets } from "../../../../lib/sanitize/sanitize.ts";
import { cutTail } from "../../executor/capture.ts";
import type { HeldFile } from "../../roots/held-file.ts";
import { asFault } from "../../roots/refusals.ts";
import type { ToolContext } from "../tool.ts";
import { decodeText, type Encoding, encodingOf, isWide } from "./encoding.ts";
import { findLine, headOfLines } from "./lines.ts";
import { readUpTo } from "./read-up-to.ts";
import { maskWide } from "./wide-text.ts";

const DEFAULT_BYTES = 65_536;

const NEED = { access: "read", field: "path" } as const;

/**
 * fs.read: at most max_bytes of a regular file. Text that goes on is cut between characters, so `offset` plus the
 * bytes of the text is where the next read starts. Of a secret that the slice cuts, its part is masked by "*".
 */
export async function readSlice(
  request: ReadRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof ReadResponseSchema>> {
  using file = context.roots.openFile(request.path, NEED);
  try {
    const encoding = encodingOf(request.encoding);
    const start = await startOf(request, encoding, file, context);
    const named = request.fromEnd || request.firstLine > 0n ? { offset: BigInt(start) } : {};
    return { ...(await sliceFrom(start, encoding, request, file)), ...named };
  } catch (error: unknown) {
    throw asFault(error, request.path, NEED);
  }
}

async function startOf(
  { offset, fromEnd, firstLine }: ReadRequest,
  encoding: Encoding,
  { fd, stats }: HeldFile,
  context: ToolContext,
): Promise<number> {
  if (firstLine > 0n) return await findLine(fd, Number(firstLine), encoding, context);
  const start = fromEnd ? Math.max(0, stats.size - Number(offset)) : Number(offset);
  // Between two characters, where each has two bytes.
  return isWide(encoding) ? start - (start % 2) : start;
}

async function sliceFrom(
  start: number,
  encoding: Encoding,
  { maxBytes, maxLines }: ReadRequest,
  { fd, stats }: HeldFile,
): Promise<MessageInitShape<typeof ReadResponseSchema>> {
  const asked = maxBytes || DEFAULT_BYTES;
  const wanted = isWide(encoding) ? Math.max(4, asked - (asked % 2)) : asked;
  // One byte more shows whether the file goes on; files of /proc state no size.
  const found = await readUpTo(fd, start, wanted + 1);
  const size = BigInt(Math.max(stats.size, start + found.length));
  const slice = headOfLines(found.subarray(0, wanted), maxLines);
  const truncated = found.length > slice.length;
  // Only a slice can cut a secret, and a later sanitizer does not see what it was cut from.
  const bytes = start === 0 && !truncated ? slice : await withoutCutSecrets(fd, start, slice.length, encoding);
  const text = textOf(bytes, truncated, encoding);
  return text === undefined ? { data: new Uint8Array(bytes), size, truncated } : { text, size, truncated };
}

/** The text of a slice; undefined for what is no text. */
function textOf(bytes: Buffer, truncated: boolean, encoding: Encoding): string | undefined {
  if (!truncated) return decodeText(bytes, encoding);
  if (encoding === "UTF-8") return decodeText(cutTail(bytes), encoding);
  return decodeText(isWide(encoding) ? withoutHalf(bytes, encoding) : bytes, encoding);
}

/** Without the first half of a character of four bytes at the end. */
function withoutHalf(bytes: Buffer, encoding: Encoding): Buffer {
  if (bytes.length <= 2) return bytes;
  const at = bytes.length - 2;
  const unit = encoding === "UTF-16LE" ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at);
  return (unit & 0xfc00) === 0xd800 ? bytes.subarray(0, at) : bytes;
}

/** How far around a slice a secret that it cuts is looked for, in bytes: longer than any but the longest keys. */
const AROUND = 4096;

async function withoutCutSecrets(fd: number, start: number, length: number, encoding: Encoding): Promise<Buffer> {
  const before = Math.min(start, AROUND);
  const around = await readUpTo(fd, start - before, before + length + AROUND);
  return isWide(encoding)
    ? maskWide(around, before, before + length, encoding)
    : maskCutSecrets(around, before, before + length);
}
