import { chmod, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { UsageError } from "./errors/usage-error.ts";

const GROUP_AND_OTHERS = 0o077;

/**
 * The bytes of a person's own file with a token; undefined where there is none. Throws a UsageError for one that cannot
 * be read, or that anybody else may read.
 */
export async function readOwnFile(path: string): Promise<Uint8Array | undefined> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw unreadable(path, error);
  });
  if (file === undefined) return undefined;
  try {
    // Asked of the open file, so that it is the file that is read.
    if (((await file.stat()).mode & GROUP_AND_OTHERS) !== 0) throw openToOthers(path);
    return await file.readFile().catch((error: unknown) => {
      throw unreadable(path, error);
    });
  } finally {
    await file.close();
  }
}

function unreadable(path: string, cause: unknown): UsageError {
  return new UsageError(`${path} cannot be read`, [], { cause });
}

function openToOthers(path: string): UsageError {
  const hint = `make it private: chmod 600 ${path}`;
  return new UsageError(`${path} may be read by others, and it holds a token`, [hint]);
}

/** Writes a file that only its owner can read (0600), whole or not at all. Makes its folder, mode 0700. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  await rm(temporary, { force: true });
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  // A file mode is cut by the umask, never widened; a stricter umask would lock out the owner.
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
