import { processContext } from "./command-context.ts";
import { runCli } from "./run-cli.ts";

process.exitCode = await runCli(process.argv.slice(2), processContext());

/** How long what a command that failed has left open may keep the process, in milliseconds. */
const LAST_MS = 5_000;

// A service that could not start must end, or it would not be started again. What is written still gets out.
if (process.exitCode !== 0) {
  setInterval(() => {
    if (process.stdout.writableLength === 0 && process.stderr.writableLength === 0) process.exit();
  }, LAST_MS).unref();
}
