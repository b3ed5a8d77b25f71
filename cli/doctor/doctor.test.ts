import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { formatVkey, noteKeyOf } from "../../lib/sign/note.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runInFake } from "../testing/fake-context.ts";
import type { Finding } from "./finding.ts";
import { checkNode } from "./local-checks.ts";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

async function findings(env: Record<string, string>): Promise<{ code: number; found: Finding[] }> {
  const { code, stdout } = await runInFake(["doctor", "--json"], { env });
  return { code, found: JSON.parse(stdout).findings };
}

const stateOf = (found: readonly Finding[], check: string) => found.find((finding) => finding.check === check)?.state;

describe("reeve doctor", () => {
  it("says which secrets every program of this user can read", async () => {
    const { found } = await findings(stack.owner);
    const text = found.find(({ check }) => check === "secrets")?.text ?? "";
    for (const name of ["policy/sealing.key", "device/device.key", "profile.json", "chat.token"]) {
      expect(text).toContain(name);
    }
    expect(text).not.toContain("operator");
    expect(stateOf(found, "secrets")).toBe("note");
  });

  it("finds a working control plane whole", async () => {
    const { code, found } = await findings(stack.operator);
    expect(code).toBe(0);
    const checks = [
      "node",
      "data folder",
      "profile",
      "tokens",
      "registry",
      "policy",
      "token",
      "device this",
      "policy file",
    ];
    for (const check of checks) expect([check, stateOf(found, check)]).toEqual([check, "ok"]);
    expect(found.filter(({ state }) => state === "broken")).toEqual([]);
  });

  it("takes what an agent may not ask for no fault of the control plane", async () => {
    const { code, found } = await findings({ ...stack.agent });
    expect(code).toBe(0);
    expect(stateOf(found, "policy file")).toBe("note");
  });

  it("names a token that is not known", async () => {
    const { code, found } = await findings({ ...stack.operator, REEVE_TOKEN: "rv_unknown" });
    expect(code).toBe(1);
    expect(stateOf(found, "token")).toBe("broken");
  });

  it("names a service that does not answer", async () => {
    const env = { ...stack.operator, REEVE_REGISTRY_URL: "http://127.0.0.1:1", REEVE_TOKEN: "x" };
    const { code, found } = await findings(env);
    expect(code).toBe(1);
    expect(stateOf(found, "registry")).toBe("broken");
  });

  it("names a NATS server that does not answer", async () => {
    const { code, found } = await findings({ ...stack.operator, REEVE_NATS_URL: "nats://127.0.0.1:1" });
    expect(code).toBe(1);
    expect(stateOf(found, "nats")).toBe("broken");
  });

  it("names a checkpoint that is signed by another key than the one that is kept here", async () => {
    const path = join(stack.dataFolder, "policy", "checkpoint.vkey");
    const before = await readFile(path, "utf8");
    await writeFile(path, `${formatVkey(noteKeyOf("other", generateSigningKey()))}\n`);
    const { code, found } = await findings(stack.operator);
    await writeFile(path, before);
    expect(code).toBe(1);
    expect(stateOf(found, "audit log")).toBe("broken");
  });

  it("names a data folder that is open to others", async () => {
    await chmod(stack.dataFolder, 0o755);
    const { code, found } = await findings(stack.operator);
    await chmod(stack.dataFolder, 0o700);
    expect(code).toBe(1);
    expect(stateOf(found, "data folder")).toBe("broken");
  });

  it.each([
    ["20.11.0", "broken"],
    ["24.1.0", "note"],
    ["26.10.0", "ok"],
  ])("node %s: %s", (version, state) => {
    expect(checkNode(version).state).toBe(state);
  });
});
