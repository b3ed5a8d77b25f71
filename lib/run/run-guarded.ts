import { createLogger } from "../log/log.ts";
import { countConnectionError } from "../server/connection-errors.ts";
import { guardProcess, type UncaughtOrigin } from "./process-guard.ts";
import { untilSignal } from "./run-service.ts";

/** What runs until it is asked to end. */
interface Running {
  close(): Promise<void>;
}

/** How a process of Reeve is run. */
export interface GuardedRun<R extends Running> {
  /** For the log. */
  name: string;
  start(): Promise<R>;
  /** Default: until a signal asks for the end. */
  until?(running: R): Promise<void>;
  /** Where it is said in words that the process ends after an error, for a person at a terminal. Default: the log only. */
  say?(text: string): void;
}

/** Connection errors are logged at most this often, in milliseconds: callers must not be able to fill the log. */
const LOG_EVERY_MS = 1_000;

/**
 * Starts something in a process of its own and resolves when it has ended. From before the start, errors that nothing
 * caught are decided over: see `guardProcess`. They are logged as errors of the process, whatever the service's log level.
 */
export async function runGuarded<R extends Running>(run: GuardedRun<R>): Promise<void> {
  const logger = createLogger({ service: run.name, level: "warn" });
  let quietUntil = 0;
  const onConnectionError = (err: unknown): void => {
    const total = countConnectionError();
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + LOG_EVERY_MS;
    logger.warn({ err, total }, "connection failed with nothing waiting for it");
  };
  const onFatal = (err: unknown, origin: UncaughtOrigin): void => {
    logger.fatal({ err, origin }, "process ends after an error that nothing caught");
    run.say?.(
      `reeve: ended after an unexpected error: ${err instanceof Error ? err.message : String(err)}\n` +
        "What was recorded is on disk. Start it again with the same command; the log above says more.\n",
    );
  };
  const guard = guardProcess({ process, onConnectionError, onFatal });
  try {
    const running = await run.start();
    guard.protect(running);
    await (run.until?.(running) ?? untilSignal(running, process));
  } finally {
    guard.remove();
  }
}
