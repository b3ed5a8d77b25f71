import { createRequire } from "node:module";
import { UsageError } from "../errors/usage-error.ts";

/** The version that was tried; another one of the same minor version should do. */
export const RESTATE_VERSION = "1.7.12";

/**
 * The program of Restate's server. Throws where it is not installed for this platform: only those who want durable
 * runs install it.
 *
 * @param from the file beside whose packages it is looked for.
 */
export function restateProgram(from: string = import.meta.url): string {
  const platform = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  try {
    return createRequire(from).resolve(`${platform}/bin/restate-server`);
  } catch (cause: unknown) {
    const remedies = [
      `npm install @restatedev/restate-server@${RESTATE_VERSION} (it brings ${platform}; Business Source License 1.1)`,
      "or run `reeve serve agent` with REEVE_RESTATE_INGRESS_URL for a server that runs elsewhere",
    ];
    throw new UsageError("--durable needs a Restate server, which is not installed", remedies, { cause });
  }
}
