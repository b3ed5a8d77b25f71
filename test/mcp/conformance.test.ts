import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { startConformanceFace } from "./conformance-face.ts";

const SUITE = join(repositoryRoot, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/**
 * Scenarios that the requirements of a version do not count: of the extension for tasks, of headers and of JSON Schema. One for
 * notifications about tasks is left out: the suite itself skips it.
 */
const UNCOUNTED = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-dispatch-and-envelope",
  "tasks-request-headers",
  "tasks-required-task-error",
  "tasks-mrtr-input",
  "tasks-mrtr-composition",
  "http-header-validation",
  "http-custom-header-server-validation",
  "json-schema-2020-12",
];

/**
 * The official suite. It fails where something fails that is not among the expected failures, and where one of these passes;
 * the files say why each is expected.
 */
test.each(["2026-07-28", "2025-11-25"])("the face conforms to MCP %s", async (version) => {
  const { code, text } = await runSuite(["--requirements", version, "--expected-failures", expected(version)]);
  expect(code, text).toBe(0);
});

test.each(UNCOUNTED)("the face is as expected in %s", async (scenario) => {
  // The suite skips what is of an extension unless it is forced to, and calls that success.
  const args = ["--scenario", scenario, "--spec-version", "2026-07-28", "--force"];
  const { code, text } = await runSuite([...args, "--expected-failures", expected("uncounted")]);
  expect(code, text).toBe(0);
  expect(text).toMatch(/Passed: [1-9]/);
});

function expected(name: string): string {
  return join(import.meta.dirname, `expected-failures-${name}.yaml`);
}

async function runSuite(args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const face = await startConformanceFace();
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    return await run(["server", "--url", face.url, "-o", folder, ...args]);
  } finally {
    await face.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function run(args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [SUITE, ...args]);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.once("close", (code) => resolve({ code, text: Buffer.concat(chunks).toString() }));
  });
}
