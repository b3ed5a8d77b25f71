import { expect, it } from "vitest";
import { canRunBash, runInBash } from "./bash-oracle.ts";
import { findDifferences } from "./differences.ts";

it.skipIf(!canRunBash)("sees every program that bash runs", async () => {
  const ran = await runInBash([
    "ls -la | wc",
    "/usr/bin/id; frobnicate x",
    "true $(rm a)",
    "exec cat 'a b'",
    "no (",
    "find . -exec x",
  ]);
  expect(ran.map((each) => each.map((argv) => argv.join(" ")).sort())).toEqual([
    ["ls -la", "wc"],
    ["frobnicate x", "id"],
    ["rm a"],
    ["cat a b"],
    [],
    ["find . -exec x"],
  ]);
});

it.skipIf(!canRunBash)("allows nothing for which bash runs another program than the plan names", async () => {
  const { allowed, found } = await findDifferences(3000, 7);
  expect(found).toEqual([]);
  expect(allowed).toBeGreaterThan(100);
});
