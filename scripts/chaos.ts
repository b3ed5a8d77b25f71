import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { repositoryRoot } from "./repository-root.ts";

/**
 * The full chaos run: 2,000 governed calls while replicas, NATS and PostgreSQL are killed and the ways to the devices break.
 * REEVE_CHAOS_CALLS, REEVE_CHAOS_SECONDS, REEVE_CHAOS_SEED and REEVE_CHAOS_LOGS change it: see test/chaos/settings.ts.
 */
const vitest = join(repositoryRoot, "node_modules", "vitest", "vitest.mjs");
const { status } = spawnSync(process.execPath, [vitest, "run", "--project", "chaos"], {
  cwd: repositoryRoot,
  stdio: "inherit",
  env: { REEVE_CHAOS_CALLS: "2000", ...process.env },
});
process.exitCode = status ?? 1;
