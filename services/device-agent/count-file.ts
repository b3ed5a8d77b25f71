import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "./replace-file.ts";

/** How often the device has done something, kept on its disk. */
export interface CountFile {
  /**
   * The next number, from 1, which is on disk before this resolves: a number that the control plane sees twice shows that
   * the device's state was copied. Rejects where it cannot be written; then the device must not do it.
   */
  next(): Promise<bigint>;
}

/** How often the device has attached. */
export function openAttachCount(stateDir: string): Promise<CountFile> {
  return openCount(join(stateDir, "attach-count"), "dials");
}

/** 0 where there is no file yet. Rejects where it holds anything but a count: to begin again would look like a copy. */
export async function openCount(path: string, ofWhat: string): Promise<CountFile> {
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
