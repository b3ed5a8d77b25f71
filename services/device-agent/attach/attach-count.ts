import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../replace-file.ts";

/** How often the device has done something, such as dialed, kept on its disk. */
export interface AttachCount {
  /**
   * The next number, from 1, which is on disk before this resolves: a number that the control plane sees twice shows that
   * the device's state was copied. Rejects where it cannot be written; then the device must not dial.
   */
  next(): Promise<bigint>;
}

/**
 * Reads the count of dials from the device's folder; 0 where there is none yet. Rejects where the file holds anything
 * else, since to begin again would look like a copy.
 */
export function openAttachCount(stateDir: string): Promise<AttachCount> {
  return openCount(join(stateDir, "attach-count"), "dials");
}

/** The same for a count of something else, in a file of its own. */
export async function openCount(path: string, ofWhat: string): Promise<AttachCount> {
  let count = await readCount(path, ofWhat);
  return {
    async next() {
      await replaceFile(path, `${count + 1n}\n`);
      count += 1n;
      return count;
    },
  };
}

async function readCount(path: string, ofWhat: string): Promise<bigint> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error: unknown) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0n;
    throw error;
  }
  if (/^\d{1,19}\n$/.test(text)) return BigInt(text.trim());
  throw new Error(
    `The file ${path} holds no count of ${ofWhat}. Restore it, or enroll the device again in a new folder.`,
  );
}
