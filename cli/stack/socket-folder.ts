import { chmod, lstat, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";

/** A folder for the sockets of this machine's control plane, which only its owner can enter. */
export interface SocketFolder {
  path: string;
  /** Takes away what was made only for this start. */
  close(): Promise<void>;
}

/** The longest path that a socket can have everywhere: 104 bytes on macOS, 108 on Linux, with the zero at its end. */
const MAX_PATH_BYTES = 103;

/** The longest name of a socket in the folder. */
const LONGEST_NAME = "registry.sock";

/**
 * A private folder for sockets: "sockets" in the data folder, or where that path is too long for a socket, a new one in
 * $XDG_RUNTIME_DIR or the folder for temporary files. Throws where that is another user's.
 */
export async function openSocketFolder(
  dataDir: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SocketFolder> {
  const own = join(dataDir, "sockets");
  if (fits(own)) return { path: await ownFolder(own), close: () => Promise.resolve() };
  const runtime = env.XDG_RUNTIME_DIR;
  const base = runtime !== undefined && isAbsolute(runtime) && fits(join(runtime, "reeve-XXXXXX")) ? runtime : tmpdir();
  // Made anew with a name that cannot be known before, and mode 0700.
  const path = await mkdtemp(join(base, "reeve-"));
  return { path, close: () => rm(path, { recursive: true, force: true }) };
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, LONGEST_NAME)) <= MAX_PATH_BYTES;
}

async function ownFolder(path: string): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  // Not followed: a link could lead to a folder that others can enter.
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new Error(`${path} is no folder of this user: remove it, and start again`);
  }
  await chmod(path, 0o700);
  return path;
}
