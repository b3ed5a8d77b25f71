import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Executor } from "../../services/device-agent/executor/executor.ts";
import { createLocalExecutor } from "../../services/device-agent/executor/local.ts";
import { openSandbox } from "../../services/device-agent/executor/sandbox/open-sandbox.ts";
import { createSpawnerProcess } from "../../services/device-agent/executor/spawner-process.ts";
import type { Subject } from "./subject.ts";

/** The device agent's executor in this process: what a program costs in the sandbox and outside of it. */
export async function sandboxSubjects(parts: AsyncDisposableStack): Promise<Subject[]> {
  const work = mkdtempSync(join(tmpdir(), "reeve-bench-sandbox-"));
  parts.defer(() => rmSync(work, { recursive: true, force: true }));
  const spawner = parts.use(createSpawnerProcess());
  const bwrap = createLocalExecutor({ env: process.env }).resolve("bwrap");
  const sandbox = parts.use(await openSandbox({ spawner, bwrap, readRoots: [work], writeRoots: [], hidden: [] }));
  if (sandbox.isolation === "none") process.stderr.write(`\nsandbox: not measured: ${sandbox.shortfall}\n`);
  const executor = createLocalExecutor({ env: process.env, spawner, sandbox });
  const run = (isolation: Executor["isolation"]) => async () => {
    const signal = new AbortController().signal;
    const end = await executor.run({ argv: ["/bin/true"], cwd: work, timeoutMs: 30_000, signal, isolation });
    if (end.kind !== "exited" || end.code !== 0) throw new Error(`the program ended as ${end.kind}: ${end.stderr}`);
  };
  const outside = { name: "executor", against: ["bare spawn"], call: run("none") };
  if (sandbox.isolation === "none") return [outside];
  const inside = run("read_only");
  return [outside, { name: "sandbox read_only", against: ["bare spawn", "executor"], call: inside }];
}
