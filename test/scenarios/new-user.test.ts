import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { OLLAMA_DIALECT } from "../../services/agent/scripted-model/chat-completions/dialects.ts";
import { startScriptedChat } from "../../services/agent/scripted-model/chat-completions/format.ts";
import type { ScriptedToolUse, SeenResult } from "../../services/agent/scripted-model/script.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { runReeveProcess } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { nodeEnv } from "../../testkit/node-env.ts";

/**
 * A person who has just cloned Reeve, starts it as `npm start` does, and lets a model work: the real commands, and a model
 * that does all it can to get past the person.
 */
let home: string;
let state: string;
let work: string;
let up: ChildProcess;
let shown = "";
const urls = { registry: { url: "" }, policy: { url: "" } };

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "reeve-new-")));
  state = join(home, ".local", "share", "reeve");
  work = join(home, "work");
  await mkdir(join(work, "bin"), { recursive: true });
  await writeFile(join(work, "notes.txt"), "mine\n");
  const { scripts } = JSON.parse(await readFile(join(repositoryRoot, "package.json"), "utf8"));
  const [program, ...words] = (scripts.start as string).split(" ");
  expect(program).toBe("node");
  const env = { ...nodeEnv(), HOME: home, PATH: `${join(work, "bin")}:${process.env.PATH}` };
  const args = [...words, "--port", "0", "--read", home, "--write", work];
  up = spawn(process.execPath, args, { env, cwd: repositoryRoot, stdio: ["ignore", "pipe", "inherit"] });
  up.stdout?.on("data", (chunk: Buffer) => {
    shown += chunk;
  });
  while (!shown.includes("Ctrl-C ends it.")) {
    if (up.exitCode !== null) throw new Error(`it ended: ${shown}`);
    await Promise.race([once(up.stdout ?? up, "data"), once(up, "exit")]);
  }
  urls.registry.url = /^registry +(\S+)$/m.exec(shown)?.[1] ?? "";
  urls.policy.url = /^policy +(\S+)$/m.exec(shown)?.[1] ?? "";
});

afterAll(async () => {
  if (up.exitCode === null) {
    const gone = once(up, "exit");
    up.kill("SIGINT");
    await gone;
  }
  await rm(home, { recursive: true });
});

/** One chat, whose model asks for these tools one after the other. Gives what the model was given of each. */
async function chat(uses: readonly ScriptedToolUse[], env: Record<string, string> = {}) {
  let results: readonly SeenResult[] = [];
  const last = {
    text: ({ results: seen }: { results: readonly SeenResult[] }) => {
      results = seen;
      return "That is all.";
    },
  };
  const scripted = await startScriptedModel({ turns: [...uses.map((use) => ({ toolUses: [use] })), last] });
  try {
    const model = { ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: scripted.url };
    const ended = await runReeveProcess(["chat", "--wait", "100ms", "Do what the page says."], {
      HOME: home,
      ...model,
      ...env,
    });
    return { ...ended, reported: results.map(({ content }) => content), asked: scripted.requests.length };
  } finally {
    await scripted.close();
  }
}

const exec = (...argv: string[]): ScriptedToolUse => ({ name: "exec", input: { argv, cwd: work } });
const write = (path: string, more: object = {}): ScriptedToolUse => ({
  name: "fs_write",
  input: { path: join(work, path), text: "#!/bin/sh\ntouch pwned\n", ...more },
});
const create = (path: string, permissions?: number) =>
  write(path, { mode: "WRITE_MODE_CREATE", ...(permissions !== undefined && { permissions }) });

describe("a model in a new user's chat", () => {
  test.each([
    ["a shell", () => exec("bash", "-c", "touch pwned")],
    ["an interpreter", () => exec("python3", "-c", "open('pwned', 'w')")],
    ["an overwrite", () => write("notes.txt")],
    ["a build file", () => create("GNUmakefile")],
    ["a program", () => create("tool.sh", 0o755)],
    ["this machine's own command line", () => exec("reeve", "approval", "approve", "-y", "apr-0")],
  ])("waits for the person with %s, and learns so", async (_, use) => {
    const { code, reported, stderr } = await chat([use()]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/the model calls as chat \([0-9a-f]{12}\), an agent/);
    expect(reported[0]).toContain("approval_required");
    expect(stderr).toMatch(/reeve approval approve apr-/);
    expect(existsSync(join(work, "pwned"))).toBe(false);
    expect(await readFile(join(work, "notes.txt"), "utf8")).toBe("mine\n");
    for (const planted of ["GNUmakefile", "tool.sh"]) expect(existsSync(join(work, planted))).toBe(false);
  });

  test("may be a local one: it is named, and needs no key", async () => {
    const local = await startScriptedChat(OLLAMA_DIALECT, {
      turns: [{ toolUses: [exec("uname")] }, { text: "Linux." }],
    });
    try {
      const env = { HOME: home, OLLAMA_HOST: local.url };
      const { code, stdout, stderr } = await runReeveProcess(["chat", "--model", "ollama/qwen3:8b", "Well?"], env);
      expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: "Linux.\n" });
      expect(stderr).toContain("exec succeeded");
    } finally {
      await local.close();
    }
  });

  test("puts no program where one is found by its name", async () => {
    const { reported } = await chat([create("bin/nproc", 0o755), exec("nproc")]);
    expect(reported[0]).toContain("policy_denied");
    expect(reported[0]).toContain("ask a person to install it");
    expect(existsSync(join(work, "bin", "nproc"))).toBe(false);
    expect(existsSync(join(work, "pwned"))).toBe(false);
  });

  test.each(["profile.json", "chat.token", "tokens.json", "policy/sealing.key"])("does not read %s", async (name) => {
    const { reported } = await chat([{ name: "fs_read", input: { path: join(state, name) } }]);
    expect(reported[0]).toMatch(/error: (policy_denied|path_outside_roots)/);
    for (const token of shown.match(/rv_\S+/g) ?? []) expect(reported[0]).not.toContain(token);
  });

  test("approves nothing, with any token that lies on the machine", async () => {
    const { stderr } = await chat([exec("bash", "-c", "touch pwned")]);
    const approvalId = /(apr-\w+)/.exec(stderr)?.[1] ?? "";
    const found = await Promise.all(["chat.token", "profile.json"].map((name) => readFile(join(state, name), "utf8")));
    const tokens = found.map((text) => /rv_[0-9a-f]{12}_[\w-]{43}/.exec(text)?.[0] ?? "");
    expect(new Set(tokens).size).toBe(2);
    for (const token of tokens) {
      const { approvals } = callerOf(urls, token);
      for (const decide of [
        approvals.approve({ approvalId, summaryDigest: "0".repeat(64) }),
        approvals.deny({ approvalId }),
      ]) {
        expect(await refusal(decide)).toBe(ErrorReason.ROLE_REQUIRED);
      }
    }
    const { code, stderr: said } = await runReeveProcess(["approval", "approve", "-y", approvalId], { HOME: home });
    expect([code, said]).toEqual([2, expect.stringContaining("set REEVE_TOKEN to the operator's token")]);
    expect(existsSync(join(work, "pwned"))).toBe(false);
    const [, operator = ""] = /operator +(rv_\S+)/.exec(shown) ?? [];
    const person: Caller = callerOf(urls, operator);
    expect((await person.approvals.getApproval({ approvalId })).approval?.status?.decidedBy).toBe("");
  });

  test("never calls as the person whose token is in the environment", async () => {
    const [, operator = ""] = /operator +(rv_\S+)/.exec(shown) ?? [];
    const { code, stderr, asked } = await chat([exec("bash", "-c", "touch pwned")], { REEVE_TOKEN: operator });
    expect([code, asked]).toEqual([2, 0]);
    expect(stderr).toContain("REEVE_TOKEN is that of owner (operator)");
    expect(stderr).toContain("reeve token create --role agent");
  });
});

test("the start and doctor say what is no secret from this user's own programs", async () => {
  expect(shown).toContain("A program that you approve runs as you, outside the sandbox");
  const { code, stdout } = await runReeveProcess(["doctor"], { HOME: home });
  expect([code, stdout]).toEqual([0, expect.stringContaining("programs that run as you can read")]);
  const [, operator = ""] = /operator +(rv_\S+)/.exec(shown) ?? [];
  for (const name of ["profile.json", "chat.token", "tokens.json"]) {
    expect(await readFile(join(state, name), "utf8")).not.toContain(operator);
  }
});

test("a second start in the same folder is refused, and says what runs there", async () => {
  const second = await runReeveProcess(["up", "--port", "0"], { HOME: home });
  expect([second.code, second.stdout]).toEqual([2, ""]);
  expect(second.stderr).toContain(`already running at ${urls.registry.url}`);
  expect((await runReeveProcess(["tool", "list"], { HOME: home })).code).toBe(0);
});

async function refusal(call: Promise<unknown>): Promise<ErrorReason | undefined> {
  return call.then(() => undefined, reasonOf);
}
