import { runCli } from "./run-cli.ts";
import { processWorld } from "./world.ts";

process.exitCode = await runCli(process.argv.slice(2), processWorld());
