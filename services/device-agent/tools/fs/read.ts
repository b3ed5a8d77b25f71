import { isUtf8 } from "node:buffer";
import { read as readCallback } from "node:fs";
import { promisify } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReadRequest, ReadResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { maskCutSecrets } from "../../../../lib/sanitize/sanitize.ts";
import { cutTail } from "../../executor/capture.ts";
import { asFault } from "../../roots/refusals.ts";
import type { ToolContext } from "../tool.ts";

const DEFAULT_BYTES = 65_536;

const read = promisify(readCallback);

/**
 * fs.read: at most max_bytes of a regular file. Text that goes on is cut between characters, so `offset` plus the
 * bytes of the text is where the next read starts. Of a secret that the slice cuts, its part is masked by "*".
 */
export async function readSlice(
  { path, offset, maxBytes }: ReadRequest,
  { roots }: ToolContext,
): Promise<MessageInitShape<typeof ReadResponseSchema>> {
  const need = { access: "read", field: "path" } as const;
  using file = roots.openFile(path, need);
  const wanted = maxBytes || DEFAULT_BYTES;
  const start = Number(offset);
  // One byte more shows whether the file goes on; files of /proc state no size.
  const fail = (error: unknown): never => {
    throw asFault(error, path, need);
  };
  const found = await readFully(file.fd, start, wanted + 1).catch(fail);
  const truncated = found.length > wanted;
  const slice = truncated ? found.subarray(0, wanted) : found;
  // Only a slice can cut a secret, and a later sanitizer does not see what it was cut from.
  const bytes = start === 0 && !truncated ? slice : await withoutCutSecrets(file.fd, start, slice.length).catch(fail);
  const size = BigInt(Math.max(file.stats.size, start + found.length));
  const whole = truncated ? cutTail(bytes) : bytes;
  if (isUtf8(whole)) return { text: whole.toString("utf8"), size, truncated };
  return { data: new Uint8Array(bytes), size, truncated };
}

/** How far around a slice a secret that it cuts is looked for, in bytes: longer than any but the longest keys. */
const AROUND = 4096;

async function withoutCutSecrets(fd: number, start: number, length: number): Promise<Buffer> {
  const before = Math.min(start, AROUND);
  const around = await readFully(fd, start - before, before + length + AROUND);
  return maskCutSecrets(around, before, before + length);
}

async function readFully(fd: number, start: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await read(fd, buffer, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
