import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openPolicyState } from "./state-dir.ts";

let folder: string;
let stateDir: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-policy-"));
  stateDir = join(folder, "above", "policy");
});
afterEach(() => rmSync(folder, { recursive: true }));

const mode = () => statSync(stateDir).mode & 0o777;

test("makes its folder for no other user, with those above it", async () => {
  await openPolicyState({ stateDir });
  expect(mode()).toBe(0o700);
});

test("closes a folder that is open to others", async () => {
  mkdirSync(stateDir, { recursive: true });
  chmodSync(stateDir, 0o755);
  await openPolicyState({ stateDir });
  expect(mode()).toBe(0o700);
});

test("leaves a folder alone that only its group can enter, as a volume of root's", async () => {
  mkdirSync(stateDir, { recursive: true });
  chmodSync(stateDir, 0o770);
  await openPolicyState({ stateDir });
  expect(mode()).toBe(0o770);
});
