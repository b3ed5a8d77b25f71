import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { RefusedWhy } from "./sealed-message.ts";

/** Writes into the log that messages were refused, and not more often than anybody reads it. */
export interface RefusalLog {
  /** A message was refused. The first for each reason is logged at once. */
  note(why: RefusedWhy): void;
  /** Logs how many more there were, where the interval of the first is over. From time to time. */
  flush(): void;
}

/** What logging refusals needs. */
export interface RefusalLogOptions {
  logger: Pick<Logger, "warn">;
  /** How often each reason is logged, in milliseconds. Default 10000. */
  everyMs?: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** Whoever is inside the bus can send a million messages: they get a line for each reason and interval, with their number. */
export function createRefusalLog(options: RefusalLogOptions): RefusalLog {
  const { logger, everyMs = 10_000, now = () => performance.now() } = options;
  /** By reason: when it was logged last, and how many came since. */
  const seen = new Map<RefusedWhy, { loggedAt: number; more: number }>();
  const log = (why: RefusedWhy, count: number): void => {
    seen.set(why, { loggedAt: now(), more: 0 });
    const error = fault(ErrorReason.BUS_MESSAGE_REFUSED, { why });
    logger.warn({ err: error, why, count }, "a message on the bus between replicas was refused");
  };
  return {
    note(why) {
      const last = seen.get(why);
      if (last === undefined || now() - last.loggedAt >= everyMs) log(why, (last?.more ?? 0) + 1);
      else last.more++;
    },
    flush() {
      for (const [why, { loggedAt, more }] of seen) if (more > 0 && now() - loggedAt >= everyMs) log(why, more);
    },
  };
}
