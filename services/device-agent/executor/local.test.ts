import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { pidsWith } from "../testing/living.ts";
import type { RunSpec } from "./executor.ts";
import { createLocalExecutor } from "./local.ts";
import { createSpawnerProcess } from "./spawner-process.ts";

/** How many processes have this text in their command line. */
const living = (text: string): number => pidsWith(text).length;

/** A tree that hides: a child with a session of its own, a double fork, one that ignores SIGTERM, all with output closed. */
function hidingTree(tag: string, last = "sleep"): string {
  return `
    setsid sleep ${tag}1 </dev/null >/dev/null 2>&1 &
    (setsid sh -c 'setsid sleep ${tag}2 & wait' </dev/null >/dev/null 2>&1 &)
    (setsid sh -c 'trap "" TERM; sleep ${tag}3; sleep ${tag}4' </dev/null >/dev/null 2>&1 &)
    sleep 0.1; echo ready; ${last} ${tag}5`;
}

const env = { ...process.env, SECRET_OF_AGENT: "x" };
const spawner = createSpawnerProcess();
afterAll(() => spawner[Symbol.dispose]());

describe.each([
  { by: "the agent", executor: createLocalExecutor({ env, killGraceMs: 300 }) },
  { by: "a spawner process", executor: createLocalExecutor({ env, killGraceMs: 300, spawner }) },
])("started by $by", ({ executor }) => {
  function run(argv: string[], more: Partial<RunSpec> = {}) {
    return executor.run({ argv, cwd: tmpdir(), timeoutMs: 20_000, signal: new AbortController().signal, ...more });
  }

  describe("run", () => {
    it("returns output and exit code", async () => {
      const outcome = await run(["sh", "-c", "echo out; echo err >&2; exit 7"]);
      expect(outcome).toMatchObject({ kind: "exited", code: 7, stdout: "out\n", stderr: "err\n", truncated: false });
    });

    it("names the signal that ended a program", async () => {
      expect(await run(["sh", "-c", "kill -KILL $$"])).toMatchObject({
        kind: "signaled",
        signal: "SIGKILL",
        number: 9,
      });
    });

    it("passes arguments as they are", async () => {
      const outcome = await run(["printf", "%s|", "$HOME", "a b", "*", "; id"]);
      expect(outcome.stdout).toBe("$HOME|a b|*|; id|");
    });

    it("gives input to the program and end of file where there is none", async () => {
      expect((await run(["cat"], { stdin: "hé\n" })).stdout).toBe("hé\n");
      expect((await run(["cat"])).stdout).toBe("");
    });

    it.runIf(process.platform === "linux")("lets a program open its streams by name", async () => {
      const outcome = await run(["sh", "-c", "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr"], {
        stdin: "in\n",
      });
      expect(outcome).toMatchObject({ code: 0, stdout: "in\n", stderr: "err\n" });
    });

    it("keeps no descriptor open", async () => {
      const count = (): number => readdirSync("/dev/fd").length;
      await run(["true"]);
      const before = count();
      for (let i = 0; i < 20; i++) {
        await run(["cat"], { stdin: "x" });
        await run(["/no/such/program"], { stdin: "x" }).catch(() => undefined);
      }
      // The store of unused pipes shrinks and is filled again; it holds at most two batches.
      expect(count()).toBeLessThanOrEqual(before + 96);
    });

    it("survives a program that does not read its input", async () => {
      const outcome = await run(["true"], { stdin: "x".repeat(1_000_000) });
      expect(outcome).toMatchObject({ kind: "exited", code: 0 });
    });

    it("keeps head and tail of long output and drains the rest", async () => {
      const outcome = await run(["sh", "-c", "echo first; seq 1 200000; echo last"], { maxOutputBytes: 4096 });
      expect(outcome.truncated).toBe(true);
      expect(outcome.stdout.startsWith("first\n1\n")).toBe(true);
      expect(outcome.stdout.endsWith("200000\nlast\n")).toBe(true);
      expect(outcome.stdout).toMatch(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
    });

    it("hands out every chunk live", async () => {
      const chunks: string[] = [];
      const onOutput: RunSpec["onOutput"] = (stream, chunk) =>
        void chunks.push(`${stream}:${Buffer.from(chunk).toString()}`);
      await run(["sh", "-c", "echo a; echo b >&2"], { onOutput });
      expect(chunks.toSorted()).toEqual(["stderr:b\n", "stdout:a\n"]);
    });
  });

  describe("a program that prints faster than its reader reads", () => {
    const endless = ["sh", "-c", "yes 0123456789"];

    it("waits, and loses nothing", async () => {
      const lines = 300_000;
      let bytes = 0;
      let waiting = 0;
      let unpausedBytes = 0;
      const onOutput: RunSpec["onOutput"] = async (_, chunk) => {
        // What is left when it has ended is read without a pause.
        if (++waiting > 1) unpausedBytes += chunk.length;
        bytes += chunk.length;
        await sleep(1);
        waiting--;
      };
      const outcome = await run(["seq", "-w", "1", String(lines)], { onOutput });
      expect(outcome).toMatchObject({ kind: "exited", code: 0, leftBehind: false });
      expect(bytes).toBe(lines * 7);
      expect(unpausedBytes).toBeLessThan(512 * 1024);
    });

    it("ends well with a reader that takes longer than children are waited for", async () => {
      const chunks: string[] = [];
      const onOutput: RunSpec["onOutput"] = async (_, chunk) => {
        chunks.push(Buffer.from(chunk).toString());
        await sleep(1500);
      };
      const outcome = await run(["sh", "-c", "echo one; sleep 0.2; echo two; echo three"], { onOutput });
      expect(outcome).toMatchObject({ kind: "exited", code: 0, leftBehind: false, stdout: "one\ntwo\nthree\n" });
      expect(chunks.join("")).toBe("one\ntwo\nthree\n");
    });

    it("is killed when its time is up, while its reader takes nothing", async () => {
      let chunks = 0;
      const onOutput: RunSpec["onOutput"] = () => (++chunks === 1 ? new Promise(() => undefined) : undefined);
      const outcome = await run(endless, { onOutput, timeoutMs: 400 });
      expect(outcome).toMatchObject({ kind: "timed_out", survivors: 0 });
      // After the first chunk only what the pipe held: it was not read meanwhile.
      expect(outcome.stdout.length).toBeLessThan(512 * 1024);
    });

    it("is killed when it is canceled, while its reader takes nothing", async () => {
      const controller = new AbortController();
      const onOutput: RunSpec["onOutput"] = () => {
        setTimeout(() => controller.abort(), 100);
        return new Promise(() => undefined);
      };
      const outcome = await run(endless, { onOutput, signal: controller.signal });
      expect(outcome).toMatchObject({ kind: "canceled", survivors: 0 });
    });
  });

  describe("environment", () => {
    it("is built from a whitelist", async () => {
      const { stdout } = await run(["env"], { env: { COLOR: "blue" }, toolEnv: { GIT_PAGER: "cat" } });
      const names = stdout
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0] ?? "");
      expect(names).toEqual(expect.arrayContaining(["PATH", "LANG", "COLOR", "GIT_PAGER"]));
      const allowed = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "COLOR", "GIT_PAGER", "REEVE_RUN"];
      expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
    });

    it.each([
      "PATH",
      "LD_PRELOAD",
      "DYLD_INSERT_LIBRARIES",
      "NODE_OPTIONS",
      "BASH_ENV",
      "ENV",
      "IFS",
      "PYTHONPATH",
      "PERL5LIB",
      "GIT_SSH_COMMAND",
      "path",
    ])("refuses a caller's %s", async (name) => {
      const error = await run(["env"], { env: { [name]: "x" } }).catch((e: unknown) => e);
      expect(faultDetail(error)).toMatchObject({
        reason: ErrorReason.INVALID_INPUT,
        metadata: { field: `env["${name}"]` },
      });
    });
  });

  describe("start", () => {
    it.each([
      [["no-such-program-here"], "not found on the PATH"],
      [["/no/such/program"], "ENOENT"],
      [["/etc/passwd"], "EACCES"],
      [["echo", "x".repeat(3_000_000)], "E2BIG"],
    ])("reports a program that cannot start: %#", async (argv, cause) => {
      const error = await run(argv).catch((e: unknown) => e);
      expect(faultDetail(error)).toMatchObject({
        reason: ErrorReason.START_FAILED,
        metadata: { program: argv[0], cause },
      });
    });

    it.each(["./x", "bin/x", ""])("refuses the relative program %j", async (program) => {
      const error = await run([program]).catch((e: unknown) => e);
      expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field: "argv[0]" } });
    });

    it("starts nothing when the call is canceled already", async () => {
      const outcome = await run(["sh", "-c", "echo x > /tmp/never"], { signal: AbortSignal.abort() });
      expect(outcome).toMatchObject({ kind: "canceled", stdout: "" });
    });
  });

  describe.runIf(process.platform === "linux")("ending a tree", () => {
    it("leaves no process after a timeout, hidden or deaf to SIGTERM", async () => {
      const tag = `7${process.pid}1`;
      const outcome = await run(["sh", "-c", hidingTree(tag)], { timeoutMs: 3000 });
      expect(outcome).toMatchObject({ kind: "timed_out", survivors: 0, stdout: "ready\n" });
      expect(living(tag)).toBe(0);
    });

    it("leaves no process after a cancel", async () => {
      const tag = `7${process.pid}2`;
      const controller = new AbortController();
      const outcome = await run(["sh", "-c", hidingTree(tag)], {
        signal: controller.signal,
        onOutput() {
          controller.abort();
          return undefined;
        },
      });
      expect(outcome).toMatchObject({ kind: "canceled", survivors: 0 });
      expect(living(tag)).toBe(0);
    });

    it("reports an aborted deadline as a timeout", async () => {
      const signal = AbortSignal.timeout(100);
      expect(await run(["sleep", "100"], { signal })).toMatchObject({ kind: "timed_out" });
    });

    it("ends children that are left behind in the group", async () => {
      const tag = `7${process.pid}3`;
      const outcome = await run(["sh", "-c", `sleep ${tag} >/dev/null 2>&1 & exit 3`]);
      expect(outcome).toMatchObject({ kind: "exited", code: 3, leftBehind: true });
      expect(living(tag)).toBe(0);
    });

    it("ends a child that holds the output, and returns what it printed", async () => {
      const tag = `7${process.pid}4`;
      const outcome = await run(["sh", "-c", `echo hello; setsid sleep ${tag} &`]);
      expect(outcome).toMatchObject({ kind: "exited", code: 0, leftBehind: true, stdout: "hello\n" });
      expect(living(tag)).toBe(0);
    });

    it("lets a daemon stay that has its own session and no output of ours", async () => {
      const tag = `7${process.pid}5`;
      const outcome = await run([
        "sh",
        "-c",
        `pid=$(setsid sh -c 'echo $$; exec sleep ${tag} >/dev/null 2>&1' &); echo $pid`,
      ]);
      expect(outcome).toMatchObject({ kind: "exited", leftBehind: false });
      expect(living(tag)).toBe(1);
      process.kill(Number(outcome.stdout));
    });
  });
});
