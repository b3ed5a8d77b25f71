import type { ErrorDetail } from "../../gen/ts/reeve/common/v1/error_pb.ts";

/** About how large an error's detail is on the wire, in bytes; 0 where there is none. */
export function errorBytes(error: ErrorDetail | undefined): number {
  if (error === undefined) return 0;
  let bytes = 0;
  for (const [key, value] of Object.entries(error.metadata)) bytes += key.length + value.length + ENTRY_BYTES;
  for (const { field, message } of error.violations) bytes += field.length + message.length + ENTRY_BYTES;
  return bytes;
}

/** What an entry counts besides its text, so that many empty ones are not free. */
const ENTRY_BYTES = 16;
