import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { pidsWith } from "../testing/living.ts";
import { createLocalExecutor } from "./local.ts";
import { allProcesses } from "./process-tree.ts";
import { createSpawnerProcess } from "./spawner-process.ts";

const opened: Disposable[] = [];

afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

function open() {
  const spawner = createSpawnerProcess();
  opened.push(spawner);
  const executor = createLocalExecutor({ env: process.env, killGraceMs: 300, spawner });
  const signal = new AbortController().signal;
  const run = (script: string, onOutput?: () => undefined) =>
    executor.run({ argv: ["sh", "-c", script], cwd: tmpdir(), timeoutMs: 20_000, signal, onOutput });
  return { run };
}

const parentOf = (pid: number): number => allProcesses().find((one) => one.pid === pid)?.ppid ?? 0;

describe.runIf(process.platform === "linux")("a spawner process", () => {
  it("starts programs, without the agent's environment or descriptors", async () => {
    const { run } = open();
    const { stdout } = await run("echo $PPID; ls -l /proc/self/fd; tr '\\0' '\\n' </proc/$PPID/environ");
    expect(stdout.split("\n")[0]).not.toBe(String(process.pid));
    // Its own two outputs and no other pipe of the agent's.
    expect(stdout.match(/reeve-fifo/g)).toHaveLength(2);
    expect(stdout).not.toMatch(/socket:|PATH=/);
  });

  it("that dies ends its programs, and reports what they did as unknown", async () => {
    const { run } = open();
    const tag = `8${process.pid}1`;
    const script = `setsid sleep ${tag} >/dev/null 2>&1 & echo $PPID; exec sleep ${tag}`;
    const running = run(script).catch((error: unknown) => error);
    await eventually(() => expect(pidsWith(`sleep\0${tag}`).length).toBe(2));
    const [leader = 0] = pidsWith(`sleep\0${tag}`).filter((pid) => parentOf(pid) > 1);
    process.kill(parentOf(leader), "SIGKILL");
    expect(faultDetail(await running)).toMatchObject({ reason: ErrorReason.INTERRUPTED });
    expect(pidsWith(`sleep\0${tag}`)).toEqual([]);
    // The next one gets a new spawner.
    expect(await run("echo again")).toMatchObject({ kind: "exited", stdout: "again\n" });
  });

  it("ignores the signals that end the agent", async () => {
    const { run } = open();
    const outcome = await run("kill -INT $PPID; kill -TERM $PPID; kill -HUP $PPID; sleep 0.1; echo $PPID");
    expect(outcome).toMatchObject({ kind: "exited", code: 0 });
    expect((await run("echo $PPID")).stdout).toBe(outcome.stdout);
  });

  it("is shared by programs that run at once", async () => {
    const { run } = open();
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, at) => run(`echo ${at}; exit ${at}`)));
    expect(outcomes).toEqual(
      outcomes.map((_, at) => expect.objectContaining({ kind: "exited", code: at, stdout: `${at}\n` })),
    );
  });

  it("kills what runs when the agent dies", async () => {
    const folder = mkdtempSync(join(tmpdir(), "reeve-spawner-"));
    const tag = `8${process.pid}2`;
    const local = fileURLToPath(new URL("./local.ts", import.meta.url));
    const spawner = fileURLToPath(new URL("./spawner-process.ts", import.meta.url));
    writeFileSync(
      join(folder, "agent.ts"),
      `const { createLocalExecutor } = await import(${JSON.stringify(local)});
       const { createSpawnerProcess } = await import(${JSON.stringify(spawner)});
       const executor = createLocalExecutor({ env: process.env, spawner: createSpawnerProcess() });
       const argv = ["sh", "-c", "setsid sleep ${tag} >/dev/null 2>&1 & exec sleep ${tag}"];
       await executor.run({ argv, cwd: "/", timeoutMs: 60000, signal: new AbortController().signal });`,
    );
    const agent = fork(join(folder, "agent.ts"), { stdio: "inherit" });
    await eventually(() => expect(pidsWith(`sleep\0${tag}`).length).toBe(2));
    agent.kill("SIGKILL");
    await once(agent, "exit");
    await eventually(() => expect(pidsWith(`sleep\0${tag}`)).toEqual([]));
    rmSync(folder, { recursive: true });
  });
});
