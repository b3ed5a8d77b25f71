import { ConnectError } from "@connectrpc/connect";
import { isFinalError, type WatchOptions } from "../client/retry.ts";
import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";
import { visibleLine } from "./print/escape.ts";

/** Watches over restarts of a service, and says so on standard error. */
export function watchNotes(service: string, { stderr }: CommandContext): WatchOptions {
  return {
    isFinal,
    onLost(error) {
      const why = error === undefined ? "it was closed" : visibleLine(ConnectError.from(error).rawMessage);
      stderr.write(`reeve: no connection to ${service} (${why}); trying again, and nothing is watched meanwhile\n`);
    },
    onBack: () => void stderr.write(`reeve: connected to ${service} again\n`),
  };
}

/** Also where the address or the token that the user gave is not one. */
function isFinal(error: unknown): boolean {
  return isFinalError(error) || (error instanceof ConnectError && error.cause instanceof UsageError);
}
