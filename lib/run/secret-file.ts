import type { EventLogger } from "../events/bus.ts";
import { readPrivateFile } from "../files/private-file.ts";

/**
 * The text of a secret's file, read again each time it is asked for, so that a secret can be replaced while the process
 * runs. Where the file cannot be read by then, what it held last, and that is logged. Throws PrivateFileError where it
 * cannot be read to begin with.
 */
export function secretIn(path: string, logger: EventLogger): () => string {
  let last = readPrivateFile(path);
  return () => {
    try {
      last = readPrivateFile(path);
    } catch (err: unknown) {
      logger.error({ err, path }, "a secret cannot be read again; what it was is used");
    }
    return last;
  };
}
