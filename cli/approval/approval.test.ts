import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, type FakeContext, runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const ASK = "Approve? [y/N/d(etails)] ";
const held = (command: string, ...more: string[]) => ["call", "this", "shell.eval", "--command", command, ...more];

function reeve(...argv: string[]) {
  return runInFake(argv, { env: stack.operator });
}

function atTerminal(): FakeContext {
  return createFakeContext({ env: { ...stack.operator, NO_COLOR: "1" }, terminal: true });
}

async function idIn(context: FakeContext): Promise<string> {
  await context.shown("stderr", "reeve approval approve apr-");
  return /approve (apr-[0-9a-f]+)/.exec(context.stderrText())?.[1] ?? "";
}

describe("a held call at a terminal", () => {
  it("shows the summary and runs when the person says yes", async () => {
    const context = atTerminal();
    const ended = runCli(held("echo yes", "--purpose", "to see"), context);
    await context.typeAfter(ASK, "y\n");
    expect(await ended).toBe(0);
    expect(context.stdoutText()).toBe("yes\n");
    expect(context.stderrText()).toContain('command: "echo yes"');
    expect(context.stderrText()).toContain("to see");
  });

  it.each(["\n", "n\n", "what\n"])("never runs when the answer is %j", async (answer) => {
    const context = atTerminal();
    const ended = runCli(held("echo no"), context);
    await context.typeAfter(ASK, answer);
    expect(await ended).toBe(3);
    expect(context.stdoutText()).toBe("");
    expect(context.stderrText()).toContain("denied");
  });

  it("shows more on d, and asks again", async () => {
    const context = atTerminal();
    const ended = runCli(held("echo more"), context);
    await context.typeAfter(ASK, "d\n");
    await context.typeAfter("summary digest:", "yes\n");
    expect(await ended).toBe(0);
    expect(context.stdoutText()).toBe("more\n");
  });

  it("takes a yes to an abridged summary only after everything was shown", async () => {
    const hidden = 'print "hidden\\n";';
    const filler = "# nothing to see here\n".repeat(400);
    // Text for a shell would be refused, being longer than what is analyzed.
    const argv = ["perl", "-e", `${filler}${hidden}\n${filler}`].map((word) => `--argv=${word}`);
    const context = createFakeContext({ env: { ...stack.agent, NO_COLOR: "1" }, terminal: true });
    const ended = runCli(["call", "this", "exec", ...argv], context);
    const id = await idIn(context);
    const decider = atTerminal();
    const deciding = runCli(["approval", "approve", id], decider);
    await decider.typeAfter(ASK, "y\n");
    await decider.shown("stderr", "This summary does not show everything that would run.");
    expect(decider.stderrText()).not.toContain(hidden);
    await decider.typeAfter("does not show everything that would run.", "d\n");
    await decider.shown("stderr", "digest of the full text:");
    expect(decider.stderrText()).toContain(hidden);
    await decider.typeAfter("digest of the full text:", "y\n");
    expect(await deciding).toBe(0);
    expect(await ended).toBe(0);
    expect(context.stdoutText()).toBe("hidden\n");
  });

  it("goes on when another person says yes, and takes the question back", async () => {
    const context = atTerminal();
    const ended = runCli(held("echo else"), context);
    await context.shown("stderr", ASK);
    const id = /Approval (apr-[0-9a-f]+)/.exec(context.stderrText())?.[1] ?? "";
    expect((await reeve("approval", "approve", id, "--yes")).code).toBe(0);
    expect(await ended).toBe(0);
    expect(context.stdoutText()).toBe("else\n");
  });

  it("never starts after Ctrl-C", async () => {
    const context = atTerminal();
    const ended = runCli(held("echo never"), context);
    await context.shown("stderr", ASK);
    context.interrupt();
    expect(await ended).toBe(7);
    expect(context.stdoutText()).toBe("");
  });

  it("says to an agent that an operator must decide", async () => {
    const context = createFakeContext({ env: { ...stack.agent, NO_COLOR: "1" }, terminal: true });
    // What only looks would run by itself.
    const ended = runCli(held("touch . && echo agent"), context);
    expect((await reeve("approval", "approve", await idIn(context), "--yes")).code).toBe(0);
    expect(await ended).toBe(0);
    expect(context.stderrText()).not.toContain(ASK);
    expect(context.stdoutText()).toBe("agent\n");
  });
});

describe("a held call without a terminal", () => {
  it("says how to approve it, and runs when that is done", async () => {
    const context = createFakeContext({ env: stack.operator });
    const ended = runCli(held("echo later; exit 5"), context);
    const approved = await reeve("approval", "approve", await idIn(context), "--yes", "--comment", "go on");
    expect(approved.stdout).toMatch(/^apr-[0-9a-f]+ approved\n$/);
    expect(await ended).toBe(5);
    expect(context.stdoutText()).toBe("later\n");
  });

  it("ends with 4 when no decision came in time, and with --no-wait at once", async () => {
    for (const more of [["--wait", "1ms"], ["--no-wait"]]) {
      const result = await reeve(...held("echo 4", ...more));
      expect(result).toMatchObject({ code: 4, stdout: "" });
      expect(result.stderr).toContain("is held, and runs once an operator approves it");
    }
  });
});

describe("reeve approval list", () => {
  async function holdOne(command: string): Promise<string> {
    const { stdout } = await reeve(...held(command, "--no-wait", "--json"));
    return JSON.parse(stdout).status.approval.id;
  }

  it("lists and shows what waits", async () => {
    const id = await holdOne("echo shown");
    const list = await reeve("approval", "list", "--state", "pending", "--json");
    expect(JSON.parse(list.stdout).approvals).toContainEqual(expect.objectContaining({ id }));
    expect((await reeve("approval", "list")).stdout).toMatch(
      new RegExp(`^${id} +pending +shell.eval .echo shown. +this `, "m"),
    );
    const shown = await reeve("approval", "show", id);
    expect(shown.stdout).toContain('command: "echo shown"');
    expect(JSON.parse((await reeve("approval", "show", id, "--json")).stdout).spec.summaryDigest).toMatch(
      /^[0-9a-f]{64}$/,
    );
  });

  it("approves nothing unseen: without a terminal it wants --yes", async () => {
    const result = await reeve("approval", "approve", await holdOne("echo unseen"));
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no terminal to ask on") });
  });

  it("shows the summary before it asks", async () => {
    const id = await holdOne("echo summary");
    const context = atTerminal();
    const ended = runCli(["approval", "approve", id, "--comment", "fine"], context);
    await context.typeAfter(ASK, "y\n");
    expect(await ended).toBe(0);
    expect(context.stderrText()).toContain('command: "echo summary"');
    expect(JSON.parse((await reeve("approval", "show", id, "--json")).stdout).status).toMatchObject({
      state: "APPROVAL_STATE_APPROVED",
      channel: "cli",
      comment: "fine",
    });
  });

  it("denies with a comment, and lets the first decision stand", async () => {
    const id = await holdOne("echo denied");
    expect((await reeve("approval", "deny", id, "--comment", "not today")).stdout).toBe(`${id} denied\n`);
    const again = await reeve("approval", "approve", id, "--yes");
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("denied already");
  });

  it("watch asks about each, and shows what became of it", async () => {
    const pending = JSON.parse((await reeve("approval", "list", "--state", "pending", "--json")).stdout);
    for (const { id } of pending.approvals) await reeve("approval", "deny", id);
    const context = atTerminal();
    void runCli(["approval", "watch"], context);
    for (const [answer, state] of [
      ["y\n", "approved"],
      ["n\n", "denied"],
    ] as const) {
      const id = await holdOne(`echo ${state}`);
      await context.typeAfter(`Approval ${id} (pending`, answer);
      await context.shown("stdout", `${id} ${state} by `);
    }
  });

  it("names an approval that does not exist", async () => {
    for (const verb of ["show", "deny"]) {
      expect(await reeve("approval", verb, "apr-0")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("apr-0"),
      });
    }
  });
});
