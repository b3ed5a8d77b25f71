import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../testkit/stack.ts";
import { runCli } from "./run-cli.ts";
import { createFakeContext, runInFake } from "./testing/fake-context.ts";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  for (const word of ["one", "two", "three"]) await reeve("call", "this", "exec", "--", "echo", word, "x y");
});
afterAll(() => stack.close());

function reeve(...argv: string[]) {
  return runInFake(argv, { env: stack.operator });
}

const whats = (table: string) => [...table.matchAll(/exec echo (\w+) 'x y'/g)].map(([, word]) => word);

describe("reeve call list", () => {
  it("says in a line what was run, where and by whom, newest first", async () => {
    const { stdout, stderr } = await reeve("call", "list");
    expect(whats(stdout)).toEqual(["three", "two", "one"]);
    expect(stdout).toMatch(/succeeded {2}exec echo one 'x y' +this {4}owner/);
    expect(stderr).toBe("");
  });

  it("shows one with its arguments, and names beside ids", async () => {
    const { calls } = JSON.parse((await reeve("call", "list", "--json")).stdout);
    const { stdout } = await reeve("call", "show", calls[0].id);
    expect(stdout).toMatch(/device: this \(dev-[0-9a-f]{16}\)\nasked by: owner \([0-9a-f]{12}\) by cli/);
    expect(stdout).toContain("arguments:\n  argv:\n    - echo\n    - three\n    - x y\n");
    const shown = JSON.parse((await reeve("call", "show", calls[0].id, "--json")).stdout);
    expect(shown.spec.arguments).toEqual({ argv: ["echo", "three", "x y"] });
  });

  it("never cuts a list without a word, and goes on where it ended", async () => {
    const first = await reeve("call", "list", "--limit", "2");
    expect(whats(first.stdout)).toEqual(["three", "two"]);
    const [, token = ""] =
      /2 calls shown, and there are more: --limit N, or --page-token (\S+)/.exec(first.stderr) ?? [];
    const second = await reeve("call", "list", "--limit", "2", "--page-token", token);
    expect(whats(second.stdout)).toEqual(["one"]);
    expect(second.stderr).toBe("");
    expect(JSON.parse((await reeve("call", "list", "--limit", "2", "--json")).stdout).nextPageToken).toBe(token);
    expect(JSON.parse((await reeve("call", "list", "--json")).stdout).nextPageToken).toBe("");
  });

  it("lists only from a time on, and says when that is nothing", async () => {
    expect(whats((await reeve("call", "list", "--since", "1h")).stdout)).toHaveLength(3);
    const none = await reeve("call", "list", "--since", "2999-01-01");
    expect([none.stdout, none.stderr]).toEqual(["", "reeve: no calls\n"]);
    expect((await reeve("call", "list", "--state", "held")).stderr).toBe("reeve: no calls\n");
    expect((await reeve("call", "list", "--since", "soon")).code).toBe(2);
  });
});

describe("reeve audit list", () => {
  it("shows the newest first, what was run, by whom, and how many more there are", async () => {
    await reeve("audit", "list");
    const { records } = JSON.parse((await reeve("audit", "list", "--json")).stdout);
    const indexes = records.map(({ index }: { index: string }) => Number(index));
    expect(indexes).toEqual(indexes.toSorted((a: number, b: number) => b - a));
    // The ends of all three calls may be recorded after the decision about the last one.
    const { stdout, stderr } = await reeve("audit", "list", "--limit", "4");
    expect(stdout).toMatch(/owner {4} ?\S.* exec echo three 'x y' on this/);
    expect(stderr).toMatch(/4 records shown, and there are \d+ more: --limit N, or --page-token \S+\n$/);
    const more = Number(/there are (\d+) more/.exec(stderr)?.[1]);
    expect(more).toBe(Number(stdout.trim().split("\n").at(-1)?.split(" ")[0]));
  });

  it("goes on with the next page, and joins what the registry knows to the log's digests", async () => {
    const first = JSON.parse((await reeve("audit", "list", "--limit", "3", "--json")).stdout);
    const next = await reeve("audit", "list", "--limit", "1", "--page-token", first.nextPageToken, "--json");
    expect(Number(JSON.parse(next.stdout).records[0].index)).toBe(Number(first.records[2].index) - 1);
    const { callId } = first.records[0].record;
    expect(first.calls[callId]).toMatchObject({
      spec: { principalName: "owner", arguments: { argv: ["echo", "three", "x y"] } },
    });
    expect(JSON.stringify(first.records)).not.toContain("three");
  });

  it("begins at the beginning where that is wanted", async () => {
    const { stdout } = await reeve("audit", "list", "--oldest-first", "--limit", "2", "--json");
    expect(JSON.parse(stdout).records.map(({ index }: { index: string }) => index)).toEqual(["0", "1"]);
    expect((await reeve("audit", "list", "--oldest-first", "--since", "1h")).code).toBe(2);
    expect((await reeve("audit", "list", "--since", "2999-01-01")).stderr).toBe("reeve: no records\n");
  });
});

describe("reeve approval list", () => {
  it("says that there is none, and otherwise what is asked and by whom", async () => {
    expect((await reeve("approval", "list")).stderr).toBe("reeve: no approvals\n");
    const context = createFakeContext({ env: stack.agent });
    await runCli(["call", "this", "shell.eval", "--no-wait", "--command", "touch held"], context);
    const { stdout } = await reeve("approval", "list");
    expect(stdout).toMatch(/pending {2}shell\.eval 'touch held' {2}this {4}agent/);
  });
});

describe("reeve call", () => {
  it("says that part was left out only where it was", async () => {
    const whole = Array.from({ length: 100_000 }, (_, at) => `${at + 1}\n`).join("");
    const argv = ["call", "this", "exec", "--call-id", "many-lines", "--", "seq", "1", "100000"];
    const streamed = await reeve(...argv);
    expect(streamed.stdout === whole).toBe(true);
    expect(streamed.stderr).toBe("");
    // The same call again gives its stored result, which has head and tail only.
    const stored = await reeve(...argv);
    expect(stored.stdout.length).toBeLessThan(whole.length);
    expect(stored.stderr).toContain("there was more: part of it was left out");
  });
});

describe("a list on a terminal", () => {
  it("fits its width, and keeps ids whole", async () => {
    const env = { ...stack.operator, COLUMNS: "100" };
    for (const argv of [
      ["audit", "list"],
      ["tool", "list"],
      ["device", "list"],
      ["key", "list"],
    ]) {
      const { stdout } = await runInFake(argv, { env });
      for (const line of stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(100);
    }
    const [call] = JSON.parse((await reeve("call", "list", "--limit", "1", "--json")).stdout).calls;
    const [, line = ""] = (await runInFake(["call", "list", "--limit", "1"], { env })).stdout.split("\n");
    expect(line.endsWith(`  ${call.id}`)).toBe(true);
    expect(line.length - call.id.length).toBeLessThanOrEqual(72);
  });

  it("shows how long ago something was", async () => {
    expect((await reeve("call", "list", "--limit", "1")).stdout).toMatch(/ \d+[sm] ago /);
    expect((await reeve("audit", "list", "--limit", "1")).stdout).toMatch(
      /\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}\d+[sm] ago/,
    );
  });
});

describe("--follow", () => {
  it.each([
    ["call", /exec echo followed call/],
    ["audit", /ended: succeeded .* exec echo followed audit/],
  ])("of %s list shows each new one once, until Ctrl-C", async (noun, line) => {
    const context = createFakeContext({ env: stack.operator });
    const ended = runCli([noun, "list", "--follow", "--limit", "1"], context);
    await eventually(() => expect(context.stdoutText().split("\n").length).toBeGreaterThan(2));
    expect(context.stdoutText()).not.toContain(`followed ${noun}`);
    await reeve("call", "this", "exec", "--", "echo", "followed", noun);
    await eventually(() => expect(context.stdoutText()).toMatch(line));
    context.interrupt();
    expect(await ended).toBe(0);
    const lines = context.stdoutText().trim().split("\n");
    expect(new Set(lines).size).toBe(lines.length);
    expect(lines.filter((text) => /\bSTATE\b|\bINDEX\b/.test(text))).toHaveLength(1);
  });

  it("prints a line of JSON each", async () => {
    const context = createFakeContext({ env: stack.operator });
    const ended = runCli(["call", "list", "-f", "--limit", "2", "--json"], context);
    await eventually(() => expect(context.stdoutText().trim().split("\n")).toHaveLength(2));
    context.interrupt();
    await ended;
    for (const text of context.stdoutText().trim().split("\n")) expect(JSON.parse(text).id).toMatch(/^\S+$/);
  });
});

describe("show", () => {
  it("of a tool has its schemas", async () => {
    const { stdout } = await reeve("tool", "show", "fs.read");
    expect(stdout).toMatch(/^tool: fs\.read\ntraits: reads\n/);
    expect(stdout).toContain("maxBytes");
    expect(await reeve("tool", "show", "fs.none")).toMatchObject({ code: 2, stdout: "" });
  });

  it("of a device has what it offers and what it lacks", async () => {
    const { stdout } = await reeve("device", "show", "this");
    expect(stdout).toMatch(/^name: this\nid: dev-[0-9a-f]{16}\nstate: online\n/);
    expect(stdout).toMatch(/tools: .*exec, /);
  });

  it("of a record has the call that it is about", async () => {
    const [{ index, record }] = JSON.parse((await reeve("audit", "list", "--limit", "1", "--json")).stdout).records;
    const { stdout } = await reeve("audit", "show", index);
    expect(stdout).toContain(`index: ${index}\n`);
    expect(stdout).toContain(`call: ${record.callId}\n`);
  });
});

describe("reeve capability", () => {
  it("lists what devices can allow, and whether one has it", async () => {
    expect((await reeve("capability", "list")).stdout).toMatch(/^fs\.read +\S+ +reads /m);
    const { stdout } = await reeve("capability", "list", "-d", "this");
    expect(stdout).toMatch(/^fs\.read +\S+ +reads +yes /m);
    expect(stdout).toMatch(/^docker\.container\.list .* no: /m);
  });

  it("shows one with its tools", async () => {
    const { stdout } = await reeve("capability", "show", "shell.exec");
    expect(stdout).toMatch(/^capability: shell\.exec\n/);
    expect(stdout).toContain("tools: exec");
    expect(await reeve("capability", "show", "nope")).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("reeve fanout", () => {
  it("lists, shows and watches what a call to many devices left", async () => {
    expect((await reeve("fanout", "list")).stderr).toBe("reeve: no fan-outs\n");
    await reeve("call", "--device", "this", "exec", "--", "echo", "many");
    const { stdout } = await reeve("fanout", "list");
    expect(stdout).toMatch(/succeeded +exec +this +\S+/);
    const [{ id }] = JSON.parse((await reeve("fanout", "list", "--json")).stdout).fanOuts;
    expect((await reeve("fanout", "show", id)).stdout).toMatch(/state: succeeded\nwhat: exec\n/);
    const watched = await reeve("fanout", "watch", id);
    expect([watched.code, watched.stderr]).toEqual([0, expect.stringContaining("1 of 1 succeeded")]);
  });

  it("cancels one that runs", async () => {
    const context = createFakeContext({ env: stack.operator });
    const argv = ["call", "--device", "this", "--fanout-id", "stopped", "exec", "--", "sleep", "60"];
    const ended = runCli(argv, context);
    await context.shown("stderr", "running");
    const [{ id }] = JSON.parse((await reeve("fanout", "list", "--limit", "1", "--json")).stdout).fanOuts;
    expect((await reeve("fanout", "cancel", id)).code).toBe(0);
    expect(await ended).not.toBe(0);
  });
});
