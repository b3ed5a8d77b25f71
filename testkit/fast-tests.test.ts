import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fastTests } from "./fast-tests.ts";

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "reeve-fast-"));
  const files = {
    "a/pure.test.ts": 'import { isIP } from "node:net";\nimport data from "./data.json";',
    "a/circle.test.ts": 'import { one } from "./one.ts";',
    "a/one.ts": 'import { two } from "./two.ts";',
    "a/two.ts": 'import { one } from "./one.ts";\nimport type { Server } from "node:http";',
    "a/process.test.ts": 'import { start } from "./start.ts";',
    "a/start.ts": 'import { spawn } from "node:child_process";',
    "a/socket.test.ts": 'import { connect } from "node:net";\nconnect(1);',
    "a/server.test.ts": 'import { createServer } from "node:http2";',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
});
afterAll(() => rm(root, { recursive: true }));

test("finds the tests that load nothing by which a process or a server is started", () => {
  expect(fastTests(root, "**/*.test.ts").sort()).toEqual(["a/circle.test.ts", "a/pure.test.ts"]);
});
