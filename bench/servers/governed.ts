import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueFirstTokens } from "../../cli/stack/first-tokens.ts";
import { startStack } from "../../cli/stack/stack.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { answerProfiles } from "./profiler.ts";
import { reportUsage } from "./report-usage.ts";

// Everything that `reeve up` runs, in one process, with every check and every record switched on. The launcher sets this:
enableCompileCache();
const folder = mkdtempSync(join(tmpdir(), "reeve-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const work = join(folder, "work");
mkdirSync(work);
const stack = await startStack({
  dataDir: join(folder, "state"),
  ports: { registry: 0, policy: 0, device: 0 },
  deviceName: "this",
  mode: Mode.USER,
  readRoots: [work],
  writeRoots: [],
  policyFile: join(import.meta.dirname, "policy.yaml"),
  env: process.env,
  logger: createLogger({ service: "bench", level: "error" }),
});
const token = issueFirstTokens(stack.tokens)?.agent ?? "";
process.on("disconnect", () => {
  void stack.close().then(() => process.exit(0));
});
answerProfiles();
reportUsage({ url: stack.registryUrl, token });
