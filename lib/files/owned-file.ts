import { open } from "node:fs/promises";

/** A file of settings that cannot be trusted. The message names the file and, in `fix`, what to do. */
export class OwnedFileError extends Error {
  override name = "OwnedFileError";
  readonly fix: readonly string[];

  constructor(message: string, fix: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.fix = fix;
  }
}

/**
 * The text of a file that says what programs may do here. Throws OwnedFileError where it cannot be read, or where another user
 * could have written it.
 *
 * @param what the file is, for messages, such as "configuration file".
 */
export async function readOwnedFile(path: string, what: string): Promise<string> {
  const { text, mode, uid } = await readWithOwner(path).catch((cause: unknown) => {
    throw new OwnedFileError(`the ${what} ${path} cannot be read`, [], { cause });
  });
  const own = process.getuid?.();
  if (own !== undefined && uid !== own && uid !== 0)
    throw new OwnedFileError(`the ${what} ${path} belongs to another user`);
  if (own !== undefined && (mode & 0o022) !== 0)
    throw new OwnedFileError(`the ${what} ${path} may be changed by others`, [`chmod go-w ${path}`]);
  return text;
}

/** A file's text and whose it is, of the same open file. */
async function readWithOwner(path: string): Promise<{ text: string; mode: number; uid: number }> {
  await using file = await open(path, "r");
  const { mode, uid } = await file.stat();
  return { text: await file.readFile("utf8"), mode, uid };
}
