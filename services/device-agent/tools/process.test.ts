import { spawn } from "node:child_process";
import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  KillRequestSchema,
  ProcessListRequestSchema,
  ProcessOrder,
  Signal,
} from "../../../gen/ts/reeve/tools/v1/process_pb.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { createSpawnerProcess } from "../executor/spawner-process.ts";
import { procfsSource } from "./process/procfs.ts";
import { parsePs, psSource } from "./process/ps.ts";
import { redactCommand } from "./process/redact-command.ts";
import { createProcessTools } from "./process.ts";
import { createTestContext, faultOf } from "./testing/context.ts";

const sources =
  process.platform === "linux"
    ? [["/proc", procfsSource] as const, ["ps", psSource] as const]
    : [["ps", psSource] as const];

describe.each(sources)("processes from %s", (_, source) => {
  const tools = createProcessTools(source);
  const list = (input: object, test: ReturnType<typeof createTestContext>) =>
    tools.list(create(ProcessListRequestSchema, input), test.context);
  const kill = (input: object, test: ReturnType<typeof createTestContext>) =>
    tools.kill(create(KillRequestSchema, input), test.context);

  it("lists this process with its facts", async () => {
    using test = createTestContext();
    const { processes = [] } = await list({ maxResults: 5000 }, test);
    const self = processes.find(({ pid }) => pid === process.pid);
    expect(self).toMatchObject({ ppid: process.ppid, uid: process.getuid?.() ?? 0 });
    expect(self?.memoryBytes).toBeGreaterThan(10_000_000n);
    expect(self?.cpuMs).toBeGreaterThanOrEqual(0n);
    const age = Date.now() - Number(self?.startTime?.seconds) * 1000;
    expect(Math.abs(age - process.uptime() * 1000)).toBeLessThan(5000);
    expect(processes.map(({ pid }) => pid)).toEqual(
      processes.map(({ pid }) => pid).toSorted((a, b) => (a ?? 0) - (b ?? 0)),
    );
  });

  it("orders, cuts, and says that there are more", async () => {
    using test = createTestContext();
    const { processes = [], truncated } = await list({ order: ProcessOrder.MEMORY, maxResults: 2 }, test);
    expect([processes.length, truncated]).toEqual([2, true]);
    expect(processes[0]?.memoryBytes).toBeGreaterThanOrEqual(processes[1]?.memoryBytes ?? 0n);
  });

  it("hides secrets from the list and from the search", async () => {
    using test = createTestContext();
    const child = spawn("sleep", ["1000"], { argv0: "sleep --password hunter2 reeve-probe" });
    try {
      const { processes = [] } = await list({ contains: "reeve-probe" }, test);
      expect(processes.map(({ command }) => command)).toEqual(["sleep --password [redacted] reeve-probe 1000"]);
      expect((await list({ contains: "hunter2" }, test)).processes).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  it("ends a process and waits for it", async () => {
    using test = createTestContext();
    const child = spawn("sleep", ["1000"]);
    const exit = once(child, "exit");
    const answer = await kill({ pid: child.pid, waitMs: 10_000 }, test);
    expect(answer).toEqual({ ended: true, command: "sleep 1000" });
    expect((await exit)[1]).toBe("SIGTERM");
  });

  it("says that a process is still running", async () => {
    using test = createTestContext();
    const child = spawn("sh", ["-c", "trap '' TERM; echo ready; sleep 1000 & wait; wait"], { detached: true });
    await once(child.stdout, "data");
    expect(await kill({ pid: child.pid, waitMs: 50 }, test)).toMatchObject({ ended: false });
    const exit = once(child, "exit");
    process.kill(-(child.pid ?? 0), "SIGKILL");
    await exit;
  });

  it("sends the signal that is asked for", async () => {
    using test = createTestContext();
    const child = spawn("sleep", ["1000"]);
    const exit = once(child, "exit");
    await kill({ pid: child.pid, signal: Signal.KILL }, test);
    expect((await exit)[1]).toBe("SIGKILL");
  });

  it("refuses the first process, the agent and its parents", async () => {
    using test = createTestContext();
    for (const pid of [1, process.pid, process.ppid]) {
      const fault = await faultOf(kill({ pid, signal: Signal.HUP }, test));
      expect(fault).toMatchObject({ reason: ErrorReason.POLICY_BLOCKED, metadata: { rules: "proc.kill/protected" } });
    }
  });

  it.runIf(process.platform === "linux")("refuses the process that starts the agent's programs", async () => {
    using test = createTestContext();
    using _spawner = createSpawnerProcess();
    const findSpawner = async (): Promise<number> => {
      const all = await source.list(test.context);
      const found = all.find(({ ppid, command }) => ppid === process.pid && command.startsWith("reeve spawner"));
      return found?.pid ?? expect.fail("it has not started");
    };
    const pid = await eventually(findSpawner);
    expect(await faultOf(kill({ pid, signal: Signal.KILL }, test))).toMatchObject({
      reason: ErrorReason.POLICY_BLOCKED,
      metadata: { rules: "proc.kill/protected" },
    });
  });

  it("reports a process that does not exist", async () => {
    using test = createTestContext();
    const child = spawn("true");
    await once(child, "exit");
    expect(await faultOf(kill({ pid: child.pid }, test))).toMatchObject({
      reason: ErrorReason.TARGET_NOT_FOUND,
      metadata: { field: "pid" },
    });
  });
});

describe("command lines", () => {
  it.each([
    ["app --password x1", "app --password [redacted]"],
    ["app --db-password=x1 --port=80", "app --db-password=[redacted] --port=80"],
    ["env DB_PASSWORD=x1 app", "env DB_PASSWORD=[redacted] app"],
    ["app token=abc user=me", "app token=[redacted] user=me"],
    ["app --api-key 'a b' -v", "app --api-key [redacted] -v"],
    ['app {"secret":"x1"}', 'app {"secret":[redacted]}'],
    ["psql postgres://u:x1@h/d", "psql postgres://u:[redacted: password]@h/d"],
    [`app AKIA${"ABCDEFGH234567QR"}`, "app [redacted: aws_access_key]"],
    ["mysql -u root -px1 db", "mysql -u root -p[redacted] db"],
    ["curl -u me:x1 http://h", "curl -u me:[redacted] http://h"],
    ["app\u001b[31m\nx", "app x"],
    ["passenger start --port 80", "passenger start --port 80"],
    ["node server.js --author me", "node server.js --author me"],
    ["ssh-agent -D", "ssh-agent -D"],
  ])("%j is shown as %j", (command, shown) => {
    expect(redactCommand(command)).toBe(shown);
  });

  it("are cut at 4096 bytes, between characters", () => {
    const shown = redactCommand("é".repeat(5000));
    expect(shown).toBe("é".repeat(2048));
  });
});

it("reads the times of ps on Linux and macOS", () => {
  const linux = "  42     1     0 S     2048 1-02:03:04 Fri Nov 21 23:46:01 2025 /bin/app --x  y\n";
  const mac = "  42     1   501 Ss    2048   1:02.50 Fri Nov 21 23:46:01 2025     /Applications/A.app/a\n\n";
  expect(parsePs(linux)[0]).toMatchObject({ pid: 42, cpuMs: 93_784_000, memoryBytes: 2_097_152, name: "app" });
  expect(parsePs(mac)[0]).toMatchObject({ uid: 501, state: "Ss", cpuMs: 62_500, command: "/Applications/A.app/a" });
});
