import type { LogSource } from "../../lib/audit-verify/log-source.ts";
import type { CommandContext } from "../command-context.ts";

/** How often progress is shown, in records. */
const EVERY = 5000;

/** A log that shows on a terminal how many records have been read; elsewhere the very same log. */
export function withProgress(source: LogSource, { stderr }: Pick<CommandContext, "stderr">): LogSource {
  if (stderr.isTTY !== true) return source;
  return {
    ...source,
    async *entries() {
      let read = 0;
      for await (const entry of source.entries()) {
        if (++read % EVERY === 0) stderr.write(`\r${read} records read`);
        yield entry;
      }
      if (read >= EVERY) stderr.write("\r\x1b[K");
    },
  };
}
