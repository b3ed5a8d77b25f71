import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/**
 * A descriptor that reads the given bytes, such as for a program's standard input: a file without a name, as a shell makes for
 * a here-document. A program can open it by name (/dev/stdin), and nothing has to feed it. The caller closes it.
 */
export function openHeldFile(content: string | Uint8Array): number {
  const path = join(tmpdir(), `reeve-held-${randomUUID()}`);
  const write = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(write, content);
    return openSync(path, O_RDONLY | O_NOFOLLOW);
  } finally {
    unlinkSync(path);
    closeSync(write);
  }
}
