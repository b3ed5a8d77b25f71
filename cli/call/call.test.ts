import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, type FakeContextOptions, runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

function reeve(argv: readonly string[], options: FakeContextOptions = {}) {
  return runInFake(argv, { env: stack.operator, ...options });
}

async function countCalls(): Promise<number> {
  const { stdout } = await reeve(["call", "list", "--json", "--limit", "1000"]);
  return JSON.parse(stdout).calls.length;
}

describe("a call that runs a program", () => {
  it("prints what the program prints, each output once, and ends with its exit code", async () => {
    const script = "echo out; echo err >&2; exit 42";
    const result = await reeve(["call", "this", "exec", "--argv", "sh", "--argv=-c", "--argv", script]);
    expect(result).toEqual({ code: 42, stdout: "out\n", stderr: "err\n" });
  });

  it("shows output while the program runs", async () => {
    const gate = join(stack.workFolder, "gate");
    const context = createFakeContext({ env: stack.operator });
    const script = `echo ready; until [ -e ${gate} ]; do sleep 0.01; done; echo done`;
    const ended = runCli(["call", "this", "exec", "--", "sh", "-c", script], context);
    await context.shown("stdout", "ready\n");
    await writeFile(gate, "");
    expect(await ended).toBe(0);
    expect(context.stdoutText()).toBe("ready\ndone\n");
  });

  it("takes its input as one JSON document, from standard input or a file too", async () => {
    const input = JSON.stringify({ argv: ["echo", "json"] });
    const file = join(stack.workFolder, "input.json");
    await writeFile(file, input);
    for (const [word, stdin] of [
      [input, ""],
      ["-", input],
      [`@${file}`, ""],
    ] as const) {
      const result = await reeve(["call", "this", "exec", "--input", word], { input: stdin });
      expect(result).toEqual({ code: 0, stdout: "json\n", stderr: "" });
    }
  });

  it("--json prints the whole call, with the decision, the decoded receipt and its place in the log", async () => {
    const { code, stdout, stderr } = await reeve(["call", "this", "exec", "--json", "--argv", "uname"]);
    const call = JSON.parse(stdout);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(call).toMatchObject({
      spec: { tool: "exec", ingress: "INGRESS_CLI", client: "cli" },
      status: {
        state: "CALL_STATE_SUCCEEDED",
        decision: { kind: "DECISION_KIND_PERMIT", auditIndex: expect.stringMatching(/^\d+$/) },
        output: { stdout: "Linux\n" },
        outcomeAuditIndex: expect.stringMatching(/^\d+$/),
        receipt: { callId: call.id, grantId: call.status.grantId, outcome: "EXECUTION_OUTCOME_SUCCEEDED" },
        signedReceipt: expect.stringMatching(/^[A-Za-z0-9+/]+=*$/),
      },
    });
  });
});

describe("a call of another tool", () => {
  it("prints a readable result", async () => {
    const path = join(stack.workFolder, "note.txt");
    const wrote = await reeve(["call", "this", "fs.write", "--path", path, "--text", "hello\n", "--mode", "create"]);
    expect(wrote).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^bytesWritten: 6\ncreated: true\nsha256: /),
    });
    const read = await reeve(["call", "this", "fs.read", "--path", path]);
    expect(read).toEqual({ code: 0, stdout: "text:\n  hello\nsize: 6\n", stderr: "" });
  });

  it("is not run again under the same call id", async () => {
    const path = join(stack.workFolder, "once.txt");
    const argv = ["call", "this", "fs.write", "--path", path, "--text", "x", "--mode", "append", "--call-id", "once-1"];
    await reeve(argv);
    expect((await reeve(argv)).code).toBe(0);
    expect((await reeve(["call", "this", "fs.read", "--path", path])).stdout).toBe("text: x\nsize: 1\n");
    const other = await reeve(["call", "this", "fs.read", "--path", path, "--call-id", "once-1"]);
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("once-1 was used for another call") });
  });
});

describe("what is refused before it is a call", () => {
  it.each([
    [["this", "exec", "--bogus", "1"], "no flag --bogus", "--timeout-ms"],
    [["this", "exec"], "--argv is required", ""],
    [["this", "exec", "--timeout-ms", "soon", "--", "ls"], '--timeout-ms: "soon"', ""],
    [["this", "exec", "--input", '{"argv":["a"],"argv":["b"]}'], "argv: this key occurs twice", ""],
    [["this", "exec", "--input", '{"argv":"ls"}'], "params.argv", ""],
    [["this", "exec", "--input", '{"argv":["ls"],"extra":1}'], "params.extra", ""],
    [["this", "exec", "--input", "{}", "--argv", "ls"], "the input is given by --input already", ""],
    [["this", "exec", "--input=[1]"], "the input must be a JSON object", ""],
    [["this", "nope"], 'no tool "nope"', "exec"],
    [["there", "exec", "--", "ls"], 'no device "there"', "this"],
    [["this"], "DEVICE and TOOL are needed", ""],
  ])("%j names what is wrong and runs nothing", async (argv, message, hint) => {
    const before = await countCalls();
    const { code, stdout, stderr } = await reeve(["call", ...argv]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(await countCalls()).toBe(before);
  });

  it("is JSON on standard error where JSON was asked for", async () => {
    const { code, stdout, stderr } = await reeve(["call", "this", "nope", "--json"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(JSON.parse(stderr)).toMatchObject({
      error: { reason: "unknown_tool", metadata: { tool: "nope" }, exitCode: 2 },
    });
  });
});

describe("a call that does not succeed", () => {
  it.each([
    [["exec", "--", "rm", "-rf", "/"], 3, "denied:"],
    [["fs.read", "--path", "/root/secret"], 3, "failed:"],
    [["exec", "--timeout-ms", "200", "--", "sleep", "60"], 6, "timed out:"],
    [["exec", "--", "no-such-program"], 9, "failed:"],
  ])("%j ends with %d", async (argv, code, state) => {
    const result = await reeve(["call", "this", ...argv]);
    expect(result).toMatchObject({ code, stdout: "" });
    expect(result.stderr).toContain(`reeve: ${state}`);
    expect(result.stderr).toMatch(/call: cli-[0-9a-f]{24}/);
  });
});

describe("Ctrl-C", () => {
  const argv = ["call", "this", "exec", "--", "sh", "-c", "echo ready; sleep 60"];

  it("cancels the call on the device and waits for its end", async () => {
    const context = createFakeContext({ env: stack.operator });
    const ended = runCli(argv, context);
    await context.shown("stdout", "ready\n");
    context.interrupt();
    expect(await ended).toBe(7);
    expect(context.stderrText()).toContain("Ctrl-C again leaves at once");
    expect(context.stderrText()).toContain("canceled");
    expect(context.exits()).toEqual([]);
  });

  it("twice leaves at once", async () => {
    const context = createFakeContext({ env: stack.operator });
    const ended = runCli(argv, context);
    await context.shown("stdout", "ready\n");
    context.interrupt();
    context.interrupt();
    expect(context.exits()).toEqual([130]);
    await ended;
  });
});

describe("a tool's help", () => {
  it("comes from the device's schema", async () => {
    const { code, stdout } = await reeve(["call", "this", "exec", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Usage: reeve call this exec --argv TEXT ... [flags]");
  });

  it("works for built-in tools where there is no control plane", async () => {
    const { code, stdout } = await reeve(["call", "this", "fs.stat", "-h"], { env: { REEVE_DATA_DIR: "/nowhere" } });
    expect(code).toBe(0);
    expect(stdout).toContain("Usage: reeve call this fs.stat --path TEXT");
  });

  it("of the command itself lists the exit codes", async () => {
    const { code, stdout } = await reeve(["help", "call"]);
    expect(code).toBe(0);
    expect(stdout).toContain("3  denied or blocked by policy");
  });
});
