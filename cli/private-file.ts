import { chmod, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

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
