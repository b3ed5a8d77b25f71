import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { UsageError } from "./errors/usage-error.ts";

/** The authorities in a file, PEM. Throws a UsageError where it cannot be read or holds no certificate. */
export function readCaFile(path: string): string {
  try {
    const text = readFileSync(path, "utf8");
    new X509Certificate(text); // or the first connection would fail with a word about nothing
    return text;
  } catch (cause: unknown) {
    const exists = !(cause instanceof Error && "code" in cause && cause.code === "ENOENT");
    const problem = exists ? "holds no certificate that can be read" : "does not exist";
    throw new UsageError(`${path} ${problem}`, ["REEVE_CA_FILE and --ca-file name a file of authorities, PEM"], {
      cause,
    });
  }
}
