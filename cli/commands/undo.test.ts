import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
let file: string;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());
beforeEach(() => {
  file = join(stack.workFolder, "note.txt");
  writeFileSync(file, "before");
});

const reeve = (...argv: string[]) => runInFake(argv, { env: stack.operator });

/** Changes a file through the gate, and returns the call's id. */
async function change(...argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await reeve("call", "this", ...argv, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout).id;
}

describe("reeve undo", () => {
  it("puts back what a call changed, by a call of its own that is on record", async () => {
    const id = await change("fs.edit", "--path", file, "--old-text", "before", "--new-text", "after");
    expect(readFileSync(file, "utf8")).toBe("after");
    const { code, stdout } = await reeve("undo", id, "--json");
    const undo = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(undo).toMatchObject({
      spec: { tool: "fs.undo", arguments: { call: id }, ingress: "INGRESS_CLI" },
      status: { state: "CALL_STATE_SUCCEEDED", output: { paths: [file], changed: "1" } },
    });
    expect(readFileSync(file, "utf8")).toBe("before");
    expect((await reeve("undo", undo.id)).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("after");
  });

  it("prints a readable result", async () => {
    const to = join(stack.workFolder, "moved.txt");
    const id = await change("fs.move", "--path", file, "--to", to);
    expect(existsSync(file)).toBe(false);
    expect(await reeve("undo", id)).toMatchObject({ code: 0, stdout: expect.stringContaining(file) });
    expect([existsSync(file), existsSync(to)]).toEqual([true, false]);
  });

  it("waits for a person where an agent asks", async () => {
    const report = join(stack.workFolder, "report.txt");
    const written = [
      "call",
      "this",
      "fs.write",
      "--path",
      report,
      "--text",
      "x",
      "--mode",
      "create",
      "--call-id",
      "own",
    ];
    expect((await runInFake(written, { env: stack.agent })).code).toBe(0);
    const waiting = runInFake(["undo", "own", "--purpose", "a mistake"], { env: stack.agent });
    const operator = callerOf(stack, stack.tokens.operator);
    await expect
      .poll(async () => (await operator.registry.listCalls({ tool: "fs.undo", pageSize: 1 })).calls[0]?.status?.state)
      .toBe(CallState.HELD);
    expect(readFileSync(report, "utf8")).toBe("x");
    const [held] = (await operator.registry.listCalls({ tool: "fs.undo", pageSize: 1 })).calls;
    await approveCall(operator, held?.id ?? "");
    expect((await waiting).code).toBe(0);
    expect(existsSync(report)).toBe(false);
  });

  it("changes nothing where the file was changed since, and says so", async () => {
    const id = await change("fs.write", "--path", file, "--text", "after");
    writeFileSync(file, "a person's own words");
    const { code, stderr } = await reeve("undo", id);
    expect({ code, stderr }).toEqual({ code: 9, stderr: expect.stringContaining("is not as the call left it") });
    expect(readFileSync(file, "utf8")).toBe("a person's own words");
  });

  it("names what it cannot undo", async () => {
    const id = await change("fs.read", "--path", file);
    expect(await reeve("undo", id)).toMatchObject({ code: 9, stderr: expect.stringContaining("nothing is kept") });
    expect((await reeve("undo", "call-none")).code).not.toBe(0);
  });

  it("has help of its own", async () => {
    const { code, stdout } = await reeve("undo", "--help");
    expect(code).toBe(0);
    expect(stdout).toContain("Put back what a call changed of a device's files");
  });
});
