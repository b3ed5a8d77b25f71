import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UsageError } from "../errors/usage-error.ts";
import { createFakeContext, runInFake } from "../testing/fake-context.ts";
import { readJoinToken } from "./join-token.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-join-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a token on the command line is refused before anything is done with it, and not repeated", async () => {
  const env = { REEVE_DATA_DIR: folder };
  const { code, stderr } = await runInFake(["device", "join", "rvj1.c2VjcmV0"], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining("can be read by every user of this machine")]);
  expect(stderr).toContain("reeve device join");
  expect(stderr).toContain("REEVE_JOIN_TOKEN_FILE");
  expect(stderr).not.toContain("c2VjcmV0");
});

test("- reads standard input", async () => {
  expect(await readJoinToken("-", createFakeContext({ input: "rvj1.abc\n" }))).toBe("rvj1.abc");
});

test("- asks at a terminal, and what is typed is not shown", async () => {
  const context = createFakeContext({ terminal: true });
  const token = readJoinToken("-", context);
  await context.typeAfter("Join token", "rvj1.typed\n");
  expect(await token).toBe("rvj1.typed");
  expect(context.stderrText() + context.stdoutText()).not.toContain("rvj1.typed");
});

test("a file is read where only its owner can read it", async () => {
  const file = join(folder, "token");
  writeFileSync(file, "rvj1.filed\n", { mode: 0o600 });
  expect(await readJoinToken(file, createFakeContext())).toBe("rvj1.filed");
  const open = join(folder, "open");
  writeFileSync(open, "rvj1.open\n", { mode: 0o604 });
  await expect(readJoinToken(open, createFakeContext())).rejects.toThrow("open to others");
});

test.each([
  ["", "empty"],
  ["x".repeat(70_000), "too long"],
])("standard input that is no token is refused", async (input) => {
  await expect(readJoinToken("-", createFakeContext({ input }))).rejects.toThrow(UsageError);
});

test("a file that is not there is refused", async () => {
  await expect(readJoinToken(join(folder, "none"), createFakeContext())).rejects.toThrow("cannot be opened");
});
