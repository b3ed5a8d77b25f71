import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { OLLAMA_DIALECT } from "../../services/agent/scripted-model/chat-completions/dialects.ts";
import { startScriptedChat } from "../../services/agent/scripted-model/chat-completions/format.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { writeSealedOperator } from "../operator/sealed-file.ts";
import { readProfile } from "../profile.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, runInFake, TEST_COST } from "../testing/fake-context.ts";
import { usageLine } from "./result.ts";

let stack: TestStack;
let model: ScriptedModel | undefined;
const PASSPHRASE = "four words are good";

beforeAll(async () => {
  stack = await startTestStack();
  await writeSealedOperator(stack.dataFolder, stack.operator.REEVE_TOKEN, PASSPHRASE, TEST_COST);
});
afterAll(() => stack.close());
afterEach(() => model?.close());

async function envWith(turns: readonly ScriptedTurn[]): Promise<Record<string, string>> {
  model = await startScriptedModel({ turns });
  return { ...stack.owner, NO_COLOR: "1", ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url };
}

const uname: ScriptedTurn = { text: "Let me look.", toolUses: [{ name: "exec", input: { argv: ["uname"] } }] };
const evaluate: ScriptedTurn = {
  toolUses: [{ name: "shell_eval", input: { command: "printf held | tee /dev/null" } }],
};

describe("reeve chat", () => {
  it("answers one prompt: the text on standard output, what the model does on standard error", async () => {
    const env = await envWith([uname, { text: "It is Linux." }]);
    const result = await runInFake(["chat", "what", "is", "this?"], { env });
    expect(result).toMatchObject({ code: 0, stdout: "Let me look.\nIt is Linux.\n" });
    expect(result.stderr).toContain('exec {"argv":["uname"]}');
    expect(result.stderr).toContain("exec succeeded");
    expect(JSON.stringify(model?.requests[0]?.messages)).toContain("what is this?");
  });

  it("takes the prompt from standard input, and prints one document with --json", async () => {
    const env = await envWith([uname, { text: "Linux" }]);
    const { code, stdout } = await runInFake(["chat", "--json"], { env, input: "what is this?\n" });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "done",
      text: "Linux",
      turns: 2,
      calls: [{ tool: "exec", isError: false }],
    });
  });

  it("says what was used, with the cost where it is known", async () => {
    const turns = [{ text: "Linux", usage: { input: 1200, output: 80, cacheRead: 34 } }];
    const env = await envWith(turns);
    const { stdout, stderr } = await runInFake(["chat", "--json", "hello"], { env });
    expect(JSON.parse(stdout).usage).toEqual({
      inputTokens: 1200,
      outputTokens: 80,
      cacheReadTokens: 34,
      cacheWriteTokens: 0,
    });
    expect(stderr).toContain("reeve: 1 turn, 1234 tokens in and 80 out\n");
    const usage = { inputTokens: 9, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, costUsdMicros: 12_345 };
    expect(usageLine({ turns: 2, usage })).toBe("2 turns, 9 tokens in and 1 out, $0.0123");
  });

  it("uses a local model by its name, without a key", async () => {
    const local = await startScriptedChat(OLLAMA_DIALECT, { turns: [uname, { text: "It is Linux." }] });
    try {
      const env = { ...stack.owner, NO_COLOR: "1", OLLAMA_HOST: local.url.slice("http://".length) };
      const result = await runInFake(["chat", "--model", "ollama/qwen3:8b", "what is this?"], { env });
      expect(result).toMatchObject({ code: 0, stdout: "Let me look.\nIt is Linux.\n" });
      expect(result.stderr).toContain("exec succeeded");
      expect(local.requests[0]).toMatchObject({ model: "qwen3:8b" });
    } finally {
      await local.close();
    }
  });

  it("gives the model only the tools that are allowed, and warns of unknown ones", async () => {
    const env = await envWith([{ text: "none" }]);
    const { stderr } = await runInFake(["chat", "--tools", "fs.read,nope", "hello"], { env });
    expect(stderr).toContain("nope");
    expect(model?.requests[0]?.tools?.map((tool) => "name" in tool && tool.name)).toEqual(["fs_read"]);
  });

  it("goes on with the conversation at a terminal, until an empty line", async () => {
    const env = await envWith([{ text: "Hello." }, { text: "Still here." }]);
    const context = createFakeContext({ env, terminal: true });
    const ended = runCli(["chat"], context);
    await context.typeAfter("> ", "hi\n");
    await context.shown("stdout", "Hello.");
    context.stdin.write("again\n");
    await context.shown("stdout", "Still here.");
    context.stdin.write("\n");
    expect(await ended).toBe(0);
    expect(model?.requests[1]?.messages).toHaveLength(3);
  });

  it("asks the person at the terminal about a held call", async () => {
    const context = createFakeContext({ env: await envWith([evaluate, { text: "Done." }]), terminal: true });
    const ended = runCli(["chat", "run it"], context);
    await context.typeAfter("Approve? [y/N/d(etails)] ", "y\n");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    expect(await ended).toBe(0);
    expect(context.stderrText()).toContain('command: "printf held | tee /dev/null"');
    expect(context.stderrText()).toContain("shell.eval succeeded");
    expect(context.stderrText()).not.toContain(PASSPHRASE);
  });

  it("takes a no without a passphrase: the model's call is canceled", async () => {
    const context = createFakeContext({ env: await envWith([evaluate, { text: "Then not." }]), terminal: true });
    const ended = runCli(["chat", "run it"], context);
    await context.typeAfter("Approve? [y/N/d(etails)] ", "n\n");
    expect(await ended).toBe(0);
    expect(context.stderrText()).toContain("shell.eval failed: error: canceled");
    expect(context.stderrText()).not.toContain("passphrase");
  });

  it("says how to approve a held call where there is no terminal", async () => {
    const env = await envWith([evaluate, { text: "It waits." }]);
    const { code, stderr } = await runInFake(["chat", "--wait", "50ms", "run it"], { env });
    expect(code).toBe(0);
    expect(stderr).toContain("reeve approval approve apr-");
  });

  it("cancels what runs on Ctrl-C", async () => {
    const sleep: ScriptedTurn = { toolUses: [{ name: "exec", input: { argv: ["sleep", "60"] } }] };
    const context = createFakeContext({ env: await envWith([sleep, { text: "never" }]) });
    const ended = runCli(["chat", "sleep"], context);
    await context.shown("stderr", "exec {");
    context.interrupt();
    expect(await ended).toBe(7);
    expect(context.stdoutText()).toBe("");
  });

  it.each([
    [{ status: 401, type: "authentication_error" }, 3],
    [{ status: 400, type: "invalid_request_error" }, 1],
  ])("ends with a code of its own when the model cannot be used: %j", async (failure, code) => {
    const env = await envWith([{ text: "never", failures: [failure] }]);
    expect(await runInFake(["chat", "hello"], { env })).toMatchObject({ code, stdout: "" });
  });

  it("stops after --max-turns", async () => {
    const result = await runInFake(["chat", "--max-turns", "1", "go"], { env: await envWith([uname, uname]) });
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining("stopped after 1 turn") });
  });

  it("needs a key", async () => {
    const result = await runInFake(["chat", "hello"], { env: stack.owner });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining("ANTHROPIC_API_KEY is not set") });
  });
});

describe("who the model is", () => {
  const touch: ScriptedTurn = { toolUses: [{ name: "exec", input: { argv: ["touch", "x"] } }] };
  const chat = async (env: Record<string, string>, ...words: string[]) =>
    runInFake(["chat", "--wait", "50ms", ...words, "go"], {
      env: { ...(await envWith([touch, { text: "." }])), ...env },
    });

  it("is an agent of its own, whose calls are held as any agent's", async () => {
    const { code, stderr } = await chat({});
    expect(code).toBe(0);
    expect(stderr).toMatch(/the model calls as chat \([0-9a-f]{12}\), an agent/);
    expect(stderr).toContain("reeve approval approve apr-");
  });

  it("is whose token is given", async () => {
    expect((await chat({ REEVE_TOKEN: stack.agent.REEVE_TOKEN })).stderr).toContain("calls as agent (");
    const both = { REEVE_AGENT_TOKEN: stack.agent.REEVE_TOKEN, REEVE_TOKEN: stack.operator.REEVE_TOKEN };
    expect((await chat(both)).stderr).toContain("calls as agent (");
  });

  it.each(["REEVE_TOKEN", "REEVE_AGENT_TOKEN"])("is never an operator, whose token is in %s", async (name) => {
    const { code, stderr } = await chat({ [name]: stack.operator.REEVE_TOKEN });
    expect(code).toBe(2);
    expect(stderr).toContain(`${name} is that of owner (operator)`);
    expect(stderr).toContain("reeve token create --role agent");
    expect(model?.requests).toEqual([]);
  });

  it("is never the person's own principal, which sees everybody's calls", async () => {
    const token = (await readProfile(stack.dataFolder))?.token ?? "";
    const { code, stderr } = await chat({ REEVE_TOKEN: token });
    expect([code, stderr]).toEqual([2, expect.stringContaining("owner-cli (auditor, agent)")]);
  });

  it("is an operator where that is asked for, which is said loudly", async () => {
    const { stderr } = await chat({ REEVE_TOKEN: stack.operator.REEVE_TOKEN }, "--as-operator");
    expect(stderr).toContain("WARNING: the model calls as owner");
    expect(stderr).toContain("exec succeeded");
  });

  it("is an operator only after the passphrase", async () => {
    expect(await chat({}, "--as-operator")).toMatchObject({ code: 2, stderr: expect.stringContaining("no terminal") });
  });
});
