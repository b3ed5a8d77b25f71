import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLI, runReeve, runReeveProcess } from "../../testkit/cli.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { processesWith } from "../../testkit/programs.ts";

/** `reeve up`, as a person runs it who has just cloned: an empty home, and nothing set. */
let home: string;
let state: string;
let up: Up;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "reeve-up-"));
  state = join(home, ".local", "share", "reeve");
  await mkdir(join(home, "work"));
  await writeFile(join(home, "work", "notes.txt"), "in the folder of the start\n");
  await writeFile(join(home, "private.txt"), "in the home folder\n");
  up = await startUp();
  operator = /operator +(rv_\S+)/.exec(up.text)?.[1] ?? "";
});
afterAll(async () => {
  await up.stop();
  await rm(home, { recursive: true });
});

const reeve = (...args: string[]) => runReeve(args, { HOME: home });
/** The token that the first start showed. */
let operator: string;
const asOperator = (...args: string[]) => runReeve(args, { HOME: home, REEVE_TOKEN: operator });

describe("the first start", () => {
  test("shows an operator's and an agent's token once, and keeps neither where others can read", async () => {
    expect(up.text).toMatch(/operator +rv_\w{12}_\S{43}\n +agent +rv_\w{12}_\S{43}\n/);
    expect((await stat(state)).mode & 0o777).toBe(0o700);
    for (const name of ["profile.json", "tokens.json", "chat.token"]) {
      expect((await stat(join(state, name))).mode & 0o777).toBe(0o600);
      expect(await readFile(join(state, name), "utf8")).not.toContain(operator);
    }
  });

  test("lets this machine's `reeve` in by itself", async () => {
    const { code, stdout, stderr } = await reeve("call", "this", "exec", "--argv", "uname", "--argv=-s");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.trim()).not.toBe("");
    const doctor = await reeve("doctor");
    expect(doctor.code, doctor.stdout).toBe(0);
  });

  test("opens the folder that it is started in for reading, not the home folder, and nothing of Reeve's own", async () => {
    const notes = await reeve("call", "this", "fs.read", "--path", join(home, "work", "notes.txt"));
    expect(notes.stdout).toContain("in the folder of the start");
    for (const path of [
      join(home, "private.txt"),
      join(state, "profile.json"),
      join(state, "policy", "sealing.key"),
      join(state, "tokens.json"),
    ]) {
      const own = await reeve("call", "this", "fs.read", "--path", path);
      expect([own.code, own.stdout]).toEqual([3, ""]);
    }
    const path = join(home, "new.txt");
    const write = await reeve("call", "this", "fs.write", "--path", path, "--text", "x", "--mode", "create");
    expect([write.code, write.stderr]).toEqual([3, expect.stringContaining("--write FOLDER")]);
  });

  test("asks a person about what an agent wants, and the record of it verifies offline", async () => {
    const [, token = ""] = /agent +(rv_\S+)/.exec(up.text) ?? [];
    const argv = ["call", "this", "exec", "--no-wait", "--call-id", "up-held", "--argv", "touch", "--argv", "x"];
    const held = await runReeve(argv, { HOME: home, REEVE_TOKEN: token });
    const [, approvalId = ""] = /(apr-\w+)/.exec(held.stderr) ?? [];
    const unproven = await reeve("approval", "deny", approvalId);
    expect([unproven.code, unproven.stderr]).toEqual([2, expect.stringContaining("operator's token")]);
    expect((await asOperator("approval", "deny", approvalId)).code).toBe(0);
    // The id that others know: what an agent chooses is scoped to it.
    const [id = ""] = /up-held-\w+/.exec((await reeve("call", "list", "--json")).stdout) ?? [];
    expect((await reeve("call", "show", id)).stdout).toMatch(/state: denied/);
    const verified = await reeve("audit", "verify");
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining(join(state, "reeve.db"))]);
  });
});

test.runIf(process.platform === "linux")("its programs get no descriptor that it got from its own parent", async () => {
  const { code, stdout } = await asOperator("call", "this", "exec", "--", "sh", "-c", "ls -l /proc/self/fd");
  expect(code).toBe(0);
  expect(stdout).toMatch(/ 0 -> /);
  expect(stdout).not.toContain("inherited");
});

describe("a second one", () => {
  test("in the same folder is refused before it touches anything: a call that runs goes on and ends truthfully", async () => {
    const go = join(home, "go");
    const program = `echo started; until [ -e ${go} ]; do sleep 0.05; done; echo finished`;
    const call = startCall("up-lives", program);
    await call.started;
    const profile = await readFile(join(state, "profile.json"), "utf8");
    const { port } = new URL(up.registry);
    for (const same of [port, "0"]) {
      const second = await runReeveProcess(["up", "--port", same], { HOME: home });
      expect([second.code, second.stdout]).toEqual([2, ""]);
      expect(second.stderr).toContain(`reeve up is already running at ${up.registry} (pid ${up.pid})`);
      expect(second.stderr).toContain(`the folder ${state} belongs to it`);
      expect(second.stderr).toContain("REEVE_DATA_DIR");
    }
    expect(await readFile(join(state, "profile.json"), "utf8")).toBe(profile);
    await writeFile(go, "");
    expect(await call.ended).toEqual({ code: 0, stdout: "started\nfinished\n" });
    const shown = await reeve("call", "show", "up-lives", "--json");
    expect(JSON.parse(shown.stdout)).toMatchObject({
      status: { state: "CALL_STATE_SUCCEEDED", receipt: expect.anything() },
    });
  });

  test("of a part of it is refused too", async () => {
    const env = {
      HOME: home,
      REEVE_TOKENS_FILE: join(state, "tokens.json"),
      REEVE_REGISTRY_STATE_DIR: join(state, "registry"),
      REEVE_REGISTRY_PORT: "0",
      REEVE_POLICY_URL: up.registry,
      REEVE_POLICY_STATE_DIR: join(state, "policy"),
      REEVE_POLICY_PORT: "0",
      REEVE_DEVICE_STATE_DIR: join(state, "device"),
      REEVE_DEVICE_PORT: "0",
      REEVE_DEVICE_READ_ROOTS: home,
      REEVE_GRANT_KEY_FILE: join(state, "policy", "grant.pub"),
    };
    for (const part of ["registry", "policy", "device"]) {
      const { code, stderr } = await runReeveProcess(["serve", part], env);
      expect([part, code, stderr]).toEqual([part, 2, expect.stringContaining(`${part} is already running (pid `)]);
      expect(stderr).toContain("_STATE_DIR");
    }
    expect((await reeve("call", "this", "exec", "--argv", "uname")).code).toBe(0);
  });

  test("in another folder on a port that is taken says what listens there, and leaves it alone", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const other = { HOME: home, REEVE_DATA_DIR: join(home, "other") };
    const foreign = await runReeveProcess(["up", "--port", String(port)], other);
    server.close();
    expect([foreign.code, foreign.stderr]).toEqual([2, expect.stringContaining(`port ${port} of 127.0.0.1 is in use`)]);
    expect(foreign.stderr).toContain("another program listens there");
    const own = await runReeveProcess(["up", "--port", new URL(up.registry).port], other);
    expect([own.code, own.stderr]).toEqual([2, expect.stringContaining("another Reeve answers there")]);
    expect(own.stderr).toContain("--port");
    expect((await reeve("tool", "list")).code).toBe(0);
  });
});

test("a program that listens on its port while it is down receives nothing from this machine's `reeve`", async () => {
  const port = Number(new URL(up.registry).port);
  expect(await up.stop()).toBe(0);
  let received = 0;
  const stranger = createServer((socket) => {
    received++;
    socket.destroy();
  }).listen(port, "127.0.0.1");
  await once(stranger, "listening");
  for (const words of [["tool", "list"], ["call", "this", "device.ping"], ["doctor"]]) {
    const { code, stdout, stderr } = await reeve(...words);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toContain("Reeve is not running on this machine");
    expect(stdout + stderr).toContain("`reeve up`");
  }
  const given = await asOperator("tool", "list");
  expect([given.code, given.stderr]).toEqual([5, expect.stringContaining("`reeve up` starts it")]);
  expect(received).toBe(0);
  stranger.close();
  up = await startUp();
});

test("Ctrl-C ends it, and the log it leaves verifies; the next start shows no tokens and knows the calls", async () => {
  expect(await up.stop()).toBe(0);
  expect(await processesWith("HOME", home)).toEqual([]);
  const offline = await reeve("tool", "list");
  expect(offline.code).toBe(5);
  const verified = await reeve("audit", "verify");
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("The audit log verifies.")]);
  up = await startUp();
  expect(up.text).not.toContain("rv_");
  expect((await reeve("call", "list")).stdout).toContain("up-held");
  expect((await reeve("call", "this", "exec", "--argv", "uname")).code).toBe(0);
  expect(await readdir(join(home))).not.toContain("new.txt");
});

test("Ctrl-C while a program runs ends the program too, and the next start knows what became of its call", async () => {
  const call = startCall("up-running", "echo started; exec sleep 60");
  await call.started;
  expect(await up.stop()).toBe(0);
  await call.kill();
  expect(await processesWith("HOME", home)).toEqual([]);
  const recorded = await reeve("audit", "verify", "--json");
  expect(JSON.parse(recorded.stdout)).toMatchObject({ ok: true, open: [] });
  up = await startUp();
  const shown = await reeve("call", "show", "up-running", "--json");
  expect(JSON.parse(shown.stdout)).toMatchObject({
    status: { state: "CALL_STATE_CANCELED", error: { reason: "ERROR_REASON_CANCELED", metadata: { by: "shutdown" } } },
  });
});

test("a start without the profile says that it gives this machine a new token, and lets it in", async () => {
  await up.stop();
  await rm(join(state, "profile.json"));
  up = await startUp();
  expect(up.text).toContain("a new one, named owner-cli");
  expect(up.text).not.toContain("rv_");
  expect((await reeve("tool", "list")).code).toBe(0);
});

/** Calls a shell's program, as the operator, in a process of its own. */
function startCall(callId: string, program: string) {
  const env = { ...nodeEnv(), HOME: home, REEVE_TOKEN: operator };
  const args = ["call", "this", "exec", "--call-id", callId, "--", "sh", "-c", program];
  const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ["ignore", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk;
  });
  const ended = once(child, "close").then(() => ({ code: child.exitCode, stdout }));
  return {
    /** Resolves when the program has printed something. */
    started: once(child.stdout, "data"),
    ended,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

interface Up {
  /** The registry's address. */
  registry: string;
  pid: number;
  /** What it has printed by the time it was ready. */
  text: string;
  /** Ends it as Ctrl-C does; resolves with its exit code. */
  stop(): Promise<number | null>;
}

/** Starts it as a parent does that has left a descriptor open: one so high that Node does not look for it by itself. */
async function startUp(): Promise<Up> {
  const env = { ...nodeEnv(), HOME: home };
  const keepOpen = 'exec 200>>"$0"; exec "$@"';
  const argv = ["-c", keepOpen, join(home, "inherited"), process.execPath, CLI, "up", "--port", "0"];
  const child = spawn("bash", argv, { env, cwd: join(home, "work"), stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  while (!text.includes("Ctrl-C ends it.")) {
    await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => expect.unreachable(text))]);
  }
  const [, registry = ""] = /^registry +(\S+)$/m.exec(text) ?? [];
  return { registry, pid: child.pid ?? 0, text, stop: () => interrupt(child) };
}

async function interrupt(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const exited = once(child, "exit");
  child.kill("SIGINT");
  await exited;
  return child.exitCode;
}
