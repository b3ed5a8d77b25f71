import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
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

describe("a call to many devices", () => {
  it("prints how each stands to standard error, and what came back to standard output", async () => {
    const result = await reeve(["call", "--device", "this", "--fanout-id", "one", "exec", "--", "echo", "a\nb"]);
    expect(result).toMatchObject({ code: 0, stdout: "this │ a\nthis │ b\n" });
    expect(result.stderr).toMatch(/^reeve: one: 1 device in 1 wave\nreeve: wave 1: this\n/);
    expect(result.stderr).toMatch(/\n {2}this {2}ok\nreeve: 1 of 1 succeeded\n$/);
  });

  it("redraws its lines on a terminal, and lets nothing from a device act on it", async () => {
    const context = createFakeContext({ env: stack.operator, terminal: true });
    const code = await runCli(["call", "--device", "this", "exec", "--", "printf", "\\033[2Jx"], context);
    expect(code).toBe(0);
    expect(context.stderrText()).toContain("\x1b[1A\x1b[J");
    expect(context.stdoutText()).not.toContain("\x1b[2J");
  });

  it("asks the person at the terminal about the whole, and goes on when they say yes", async () => {
    const context = createFakeContext({ env: stack.operator, terminal: true });
    const ended = runCli(["call", "--device", "this", "shell.eval", "--command", "echo approved"], context);
    await context.typeAfter("Approve?", "y\n");
    expect(await ended).toBe(0);
    expect(context.stderrText()).toContain("a fan-out to 1 device");
    expect(context.stdoutText()).toContain("approved");
  });

  it("says how it can be approved without a terminal, and ends as held", async () => {
    const options = ["--device", "this", "--wait", "10ms", "--fanout-id", "held"];
    const { code, stderr } = await reeve(["call", ...options, "shell.eval", "--command", "echo no"]);
    expect(code).toBe(4);
    expect(stderr).toContain("reeve approval approve apr-");
    expect(stderr).toContain("held is held, and goes on when it is approved");
  });

  it("cancels at Ctrl-C, as a call is, and shows how it ended", async () => {
    const started = join(stack.workFolder, "started");
    const context = createFakeContext({ env: stack.operator });
    const script = `touch ${started}; sleep 60`;
    const argv = ["call", "--device", "this", "--fanout-id", "left", "exec", "--", "sh", "-c", script];
    const ended = runCli(argv, context);
    await eventually(() => expect(existsSync(started)).toBe(true));
    await context.shown("stderr", "running");
    context.interrupt();
    expect(await ended).toBe(7);
    expect(context.stderrText()).toContain("canceling it");
    expect(context.stderrText()).toMatch(/this +failed +canceled/);
  });

  it.each([
    [["call", "--device", "this", "exec", "--no-wait", "--", "ls"], /--no-wait and --call-id/],
    [["call", "--wave", "2", "this", "exec", "--", "ls"], /--wave is for many devices/],
    [["call", "--on", "role=web"], /TOOL is needed/],
    [["call", "--on", "role=none", "exec", "--", "ls"], /no device has the labels role=none/],
    [["call", "--on", "role==web", "exec", "--", "ls"], /selector:/],
    [["call", "--device", "nas", "exec", "--", "ls"], /no device "nas"/],
  ])("refuses %j", async (argv, message) => {
    const { code, stderr } = await reeve(argv);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });
});
