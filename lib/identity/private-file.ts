import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";

/** A file with a secret that cannot be used. The message is for the operator; it names the file and what to do. */
export class PrivateFileError extends Error {
  override name = "PrivateFileError";
}

const OTHERS = 0o007;
const MAX_FILE_BYTES = 65_536;

/**
 * The text of a file that holds a secret, such as a private key or a password. Its group may read it, because that is
 * how orchestrators mount a secret for a process without root; others may not. Symbolic links are followed, for the same
 * reason. Throws PrivateFileError where there is no such file, where others may read it, or where it is beyond 64 KiB.
 * Modes are not checked on Windows, which has none.
 */
export function readPrivateFile(path: string): string {
  const file = open(path);
  try {
    // Asked of the open file, so that it is the file that is read.
    const { mode, size } = fstatSync(file);
    if (size > MAX_FILE_BYTES) throw new PrivateFileError(`The file ${path} is larger than ${MAX_FILE_BYTES} bytes.`);
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, "0");
      throw new PrivateFileError(
        `The file ${path} is open to others (mode ${shown}), and it holds a secret. Make it private: chmod o-rwx ${path}`,
      );
    }
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

function open(path: string): number {
  try {
    return openSync(path, "r");
  } catch (cause: unknown) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new PrivateFileError(`The file ${path} cannot be opened: ${code}.`, { cause });
  }
}
