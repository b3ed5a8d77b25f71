import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../../lib/fault/fault.ts";
import { HAS_BWRAP, openTestSandbox, type TestSandbox } from "../../testing/test-sandbox.ts";
import { createLocalExecutor } from "../local.ts";

const LEVELS = ["read_only", "workspace"] as const;

async function expectFault(run: Promise<unknown>, reason: ErrorReason, metadata: object): Promise<void> {
  const found = faultDetail(await run.catch((error: unknown) => error));
  expect(found).toMatchObject({ reason, metadata });
}

describe.skipIf(!HAS_BWRAP)("the sandbox", () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await openTestSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const output = async (...argv: string[]): Promise<[number, string]> => {
    const run = await sandbox.run(argv);
    return [run.kind === "exited" ? run.code : -1, run.stdout];
  };

  test("holds what its agent tries at the start", () => {
    expect(sandbox.executor).toMatchObject({ isolation: "read_only", shortfall: "" });
  });

  test("shows the granted folders, and what programs need", async () => {
    expect(await output("cat", "a.txt", join(sandbox.readable, "b.txt"))).toEqual([0, "a\nb\n"]);
    expect(await output("sh", "-c", "ls /")).toEqual([
      0,
      expect.not.stringMatching(/root|home|run|sys|var|boot/) as string,
    ]);
  });

  describe.each(LEVELS)("%s", (isolation) => {
    const perl = async (code: string): Promise<string> =>
      (await sandbox.run(["perl", "-e", code], { isolation })).stdout;

    test.each([
      ["a file outside the roots", () => join(sandbox.outside, "c.txt")],
      ["the machine's passwords", () => "/etc/shadow"],
      ["a secret in a root", () => join(sandbox.work, ".env")],
      ["the agent's keys in a root", () => join(sandbox.work, "state", "device.key")],
      ["the environment of the first process", () => "/proc/1/environ"],
      ["the memory of this test", () => `/proc/${process.pid}/maps`],
      ["the environment of this test", () => `/proc/${process.pid}/environ`],
    ])("cannot read %s", async (_, path) => {
      expect((await sandbox.run(["cat", path()], { isolation })).stdout).toBe("");
    });

    test("cannot write what is not granted for writing", async () => {
      for (const folder of ["/", "/usr", "/etc", "/dev", sandbox.readable, join(sandbox.work, "state")]) {
        const run = await sandbox.run(["touch", join(folder, "canary")], { isolation });
        expect(run).toMatchObject({ kind: "exited", code: 1 });
        expect(existsSync(join(folder, "canary"))).toBe(false);
      }
    });

    test("has no network", async () => {
      await using server = createServer((socket) => socket.end("reached"));
      const port = await new Promise<number>((resolve) =>
        server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
      );
      const code = `use Socket; socket(S, AF_INET, SOCK_STREAM, 0) or die;
        print connect(S, sockaddr_in(${port}, inet_aton("127.0.0.1"))) ? "connected" : "refused";`;
      expect(await perl(code)).toBe("refused");
    });

    test("cannot open a socket of the machine", async () => {
      expect(await perl('use Socket; print socket(S, AF_UNIX, SOCK_STREAM, 0) ? "opened" : $!')).toBe(
        "Operation not permitted",
      );
      expect(await perl('print socket(S, 40, 1, 0) ? "opened" : $!')).toBe("Operation not permitted");
    });

    test.skipIf(process.arch !== "x64").each([
      ["ptrace", 101],
      ["mount", 165],
      ["unshare", 272],
      ["bpf", 321],
      ["keyctl", 250],
      ["io_uring_setup", 425],
      ["open_by_handle_at", 304],
    ])("cannot call %s", async (_, number) => {
      expect(await perl(`print syscall(${number}, 0, 0, 0, 0, 0) == -1 ? $!+0 : "called"`)).toBe("1");
    });

    test.skipIf(process.arch !== "x64")("cannot make namespaces with clone, nor use another ABI", async () => {
      expect(await perl('print syscall(56, 0x10000000 | 17, 0, 0, 0, 0) == -1 ? $!+0 : "cloned"')).toBe("1");
      expect(await perl('print syscall(435, 0, 0) == -1 ? $!+0 : "cloned"')).toBe("38");
      const foreign = await sandbox.run(["perl", "-e", "syscall(0x40000000 | 39); print 'called'"], { isolation });
      expect(foreign).toMatchObject({ kind: "exited", code: 128 + 31, stdout: "" });
    });

    test("sees and signals no other process", async () => {
      const code = `print kill(0, ${process.pid}) ? "seen" : "none", " ", join(",", glob("/proc/[0-9]*"))`;
      expect(await perl(code)).toMatch(/^none (\/proc\/\d,?){2,3}$/);
    });

    test("has no capabilities and can gain none", async () => {
      const { stdout } = await sandbox.run(
        ["grep", "-E", "^(CapEff|CapBnd|NoNewPrivs|Seccomp):", "/proc/self/status"],
        {
          isolation,
        },
      );
      expect(stdout).toBe("CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    });
  });

  test("a workspace writes the folders that are granted for writing, a read-only one nothing", async () => {
    const touch = (isolation: (typeof LEVELS)[number], name: string) => sandbox.run(["touch", name], { isolation });
    expect(await touch("read_only", "one")).toMatchObject({ kind: "exited", code: 1 });
    expect(await touch("workspace", "two")).toMatchObject({ kind: "exited", code: 0 });
    expect(["one", "two"].map((name) => existsSync(join(sandbox.work, name)))).toEqual([false, true]);
  });

  test("what is granted the network has it, and no socket of the machine", async () => {
    await using server = createServer((socket) => socket.end("reached"));
    const port = await new Promise<number>((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
    );
    const code = `use Socket; socket(S, AF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in(${port}, inet_aton("127.0.0.1"))) or die;
      print scalar <S>, socket(U, AF_UNIX, SOCK_STREAM, 0) ? " opened" : "";`;
    const run = await sandbox.run(["perl", "-e", code], { isolation: "workspace", network: true });
    expect(run).toMatchObject({ kind: "exited", code: 0, stdout: "reached" });
  });

  test("one run leaves nothing for the next", async () => {
    await sandbox.run(["sh", "-c", "echo left > /tmp/left; echo left > /dev/shm/left"]);
    expect(await output("sh", "-c", "ls -A /tmp/left /dev/shm 2>/dev/null")).toEqual([
      expect.any(Number),
      "/dev/shm:\n",
    ]);
  });

  test("a program gets its input, exit code, signals, descriptors and environment as outside", async () => {
    expect(await sandbox.run(["wc", "-c", "/dev/stdin"], { stdin: "x".repeat(200_000) })).toMatchObject({
      stdout: "200000 /dev/stdin\n",
    });
    expect(await output("sh", "-c", "cat; exit 3")).toEqual([3, ""]);
    expect(await output("sh", "-c", "kill -9 $$")).toEqual([137, ""]);
    expect((await sandbox.run(["sh", "-c", "echo a > /dev/stderr"])).stderr).toBe("a\n");
    const { stdout } = await sandbox.run(["env"], { env: { A: "'b'\n\\$(c)" } });
    expect(stdout).toMatch(/^A='b'\n\\\$\(c\)$/m);
    expect(stdout).not.toMatch(/^(PWD|OLDPWD|REEVE_AT|SHLVL)=/m);
    expect(await output("perl", "-e", "print join ',', grep { -e \"/proc/self/fd/$_\" } 3..9")).toEqual([0, ""]);
  });

  test("words come through as they are", async () => {
    const every = Array.from({ length: 0x17f }, (_, code) => String.fromCodePoint(code + 1)).join("");
    const words = [
      "",
      "'",
      "''\\''",
      "$(id)",
      "`id`",
      "a\nb\n",
      "-n",
      "\\",
      "!",
      "*",
      "~",
      "{a,b}",
      "$'\\x41'",
      "é😀\u2028",
      every,
    ];
    const { stdout } = await sandbox.run(["perl", "-e", "print join qq(\\0), @ARGV", "--", ...words]);
    expect(stdout.split("\0")).toEqual(words);
    const long = "y".repeat(100_000);
    expect((await sandbox.run(["printf", "%s", long])).stdout).toBe(long);
  });

  test("a program that cannot be started is distinguished from one that fails", async () => {
    for (const program of ["/usr/bin/nothing", join(sandbox.outside, "c.txt"), "/usr/bin"]) {
      await expectFault(sandbox.run([program]), ErrorReason.START_FAILED, { program });
    }
    await expectFault(sandbox.run(["ls"], { cwd: sandbox.outside }), ErrorReason.START_FAILED, { program: "ls" });
    for (const code of [126, 127]) expect(await output("sh", "-c", `exit ${code}`)).toEqual([code, ""]);
  });

  test("a program has limits, and a file that is too large ends it", async () => {
    const { stdout } = await sandbox.run(["sh", "-c", "ulimit -n; ulimit -c; ulimit -v"]);
    expect(stdout).toBe(`1024\n0\n${8 * 1024 ** 2}\n`);
    const large = await sandbox.run(["sh", "-c", "head -c 100000000 /dev/zero > /tmp/large"]);
    expect(large).toMatchObject({ kind: "exited", code: 128 + 25 });
  });

  test("a burst beyond what was started ahead runs whole", async () => {
    const runs = await Promise.all(Array.from({ length: 12 }, (_, at) => output("echo", String(at))));
    expect(runs).toEqual(Array.from({ length: 12 }, (_, at) => [0, `${at}\n`]));
  });

  test("a secret that is gone when a sandbox starts is no reason to fail", async () => {
    await sandbox.run(["sh", "-c", "rm -f .env.old; echo a > .env.old"], { isolation: "workspace" });
    await sandbox.run(["true"]);
    await sandbox.run(["rm", "-f", ".env.old"], { isolation: "workspace" });
    for (let count = 0; count < 6; count++) expect(await output("cat", "a.txt")).toEqual([0, "a\n"]);
  });

  test("an executor without a sandbox refuses, and runs nothing", async () => {
    const plain = createLocalExecutor({ env: process.env });
    const run = plain.run({
      argv: ["touch", join(sandbox.outside, "ran")],
      cwd: sandbox.work,
      timeoutMs: 1000,
      signal: new AbortController().signal,
      isolation: "workspace",
    });
    await expectFault(run, ErrorReason.SANDBOX_UNAVAILABLE, { required: "workspace" });
    expect(existsSync(join(sandbox.outside, "ran"))).toBe(false);
  });
});
