import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { startConformanceFace } from "./conformance-face.ts";

const SUITE = join(repositoryRoot, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/**
 * The official suite. It fails where something fails that is not among the expected failures, and where one of these passes;
 * the files say why each is expected.
 */
test.each(["2026-07-28", "2025-11-25"])("the face conforms to MCP %s", async (version) => {
  const face = await startConformanceFace();
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    const expected = join(import.meta.dirname, `expected-failures-${version}.yaml`);
    const args = ["server", "--url", face.url, "--requirements", version, "--expected-failures", expected, "-o", folder];
    const { code, text } = await run(args);
    expect(code, text).toBe(0);
  } finally {
    await face.close();
    await rm(folder, { recursive: true, force: true });
  }
});

function run(args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [SUITE, ...args]);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.once("close", (code) => resolve({ code, text: Buffer.concat(chunks).toString() }));
  });
}
