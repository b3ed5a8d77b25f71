import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { writeKeyFiles } from "./key-files.ts";
import type { Keys } from "./key-ring.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "key-files-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([0o000, 0o022, 0o077])(
  "public keys can be read by all and written by their owner, with umask %o",
  async (umask) => {
    const keys = { grantKeys: [generateSigningKey()], vkeys: "name+key" } as unknown as Keys;
    const before = process.umask(umask);
    try {
      await writeKeyFiles(folder, keys);
    } finally {
      process.umask(before);
    }
    const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
    expect(modes).toEqual([
      ["checkpoint.vkey", 0o644],
      ["grant.pub", 0o644],
    ]);
  },
);
