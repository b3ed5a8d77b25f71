import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

function reeve(...argv: string[]) {
  return runInFake(argv, { env: stack.operator });
}

async function states(role: string): Promise<string[]> {
  const { stdout } = await reeve("key", "list", "--role", role, "--json");
  return JSON.parse(stdout).keys.map((key: { state: string }) => key.state);
}

it("lists the keys that sign, by role", async () => {
  const { stdout, stderr, code } = await reeve("key", "list");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^ROLE +ID +STATE +MADE/);
  expect(stdout).toMatch(/\ngrant +[0-9a-f]{16} +active +\S/);
  expect(stdout).toMatch(/\ncheckpoint +[0-9a-f]{16} +active +\S/);
  const grants = await reeve("key", "list", "--role", "grant");
  expect(grants.stdout.trim().split("\n")).toHaveLength(2);
});

it("rotates a checkpoint key: both sign, and the log verifies with the keys beside it, before and after", async () => {
  const rotated = await reeve("key", "rotate", "checkpoint", "--overlap", "1s");
  expect(rotated).toMatchObject({ code: 0, stdout: expect.stringMatching(/\ncheckpoint +[0-9a-f]{16} +active/) });
  const call = await reeve("call", "this", "exec", "--json", "--", "true");
  await eventually(async () => expect(await states("checkpoint")).toEqual(["KEY_STATE_ACTIVE", "KEY_STATE_RETIRED"]));
  const kept = await readFile(join(stack.dataFolder, "policy", "checkpoint.vkey"), "utf8");
  expect(kept.trim().split("\n")).toHaveLength(2);
  expect(await reeve("audit", "verify")).toMatchObject({ code: 0 });
  expect(await reeve("audit", "verify", "--remote")).toMatchObject({ code: 0 });
  const proof = await reeve("audit", "prove", "--call", JSON.parse(call.stdout).id);
  expect(proof.stdout).toContain("c2sp.org/tlog-proof@v1");
  expect((await reeve("doctor")).stdout).toMatch(/audit log.*newest checkpoint signed/);
});

it("rotates the grant key: calls go on, before the device has it, and after the old key has ended", async () => {
  const rotated = await reeve("key", "rotate", "grant", "--overlap", "4s", "--json");
  expect(JSON.parse(rotated.stdout)).toMatchObject({ role: "KEY_ROLE_GRANT", state: "KEY_STATE_NEXT" });
  const phases = [
    ["KEY_STATE_NEXT", "KEY_STATE_ACTIVE"],
    ["KEY_STATE_ACTIVE", "KEY_STATE_RETIRING"],
    ["KEY_STATE_ACTIVE", "KEY_STATE_RETIRED"],
  ];
  for (const phase of phases.keys()) {
    // On a busy machine a phase may be over before it is looked at.
    await eventually(async () => expect(phases.slice(phase)).toContainEqual(await states("grant")));
    expect(await reeve("call", "this", "exec", "--", "true")).toMatchObject({ code: 0 });
  }
});

it.each([
  [["key", "rotate"], "missing required argument"],
  [["key", "rotate", "nonsense"], "Allowed choices are grant, checkpoint, device-ca"],
  [["key", "rotate", "grant", "--overlap", "soon"], "is no duration"],
  [["key", "rotate", "grant", "--overlap", "60d"], "is not from 1s to 30d"],
  [["key", "rotate", "device-ca", "--overlap", "1h"], "--overlap is not for device-ca"],
  [["key", "list", "--role", "device"], "Allowed choices are grant, checkpoint, device-ca"],
  [["audit", "verify", "--database-url"], "REEVE_POLICY_DATABASE_URL, which is not set"],
])("%j is refused: %s", async (argv, message) => {
  expect(await reeve(...argv)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});

it("is not an agent's to use", async () => {
  const refused = await runInFake(["key", "rotate", "grant"], { env: stack.agent });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("operator");
});

it.each([
  ["postgres://reader:s3cret@127.0.0.1:1/policy", "127.0.0.1:1/policy cannot be reached"],
  ["s3cret", "must look like postgres://"],
])("says why a database cannot be read, and never its password: %#", async (url, message) => {
  const key = join(stack.dataFolder, "policy", "checkpoint.vkey");
  const env = { ...stack.operator, REEVE_POLICY_DATABASE_URL: url };
  const result = await runInFake(["audit", "verify", "--database-url", "--key", key], { env });
  expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  expect(result.stderr + result.stdout).not.toContain("s3cret");
  const keyless = await runInFake(["audit", "verify", "--database-url"], { env });
  expect(keyless).toMatchObject({ code: 2, stderr: expect.stringContaining("needs --key") });
});
