import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { runTool } from "../../scripts/run-tool.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

/** What each example prints at the end, in the order of client/README.md. */
const PRINTED = ["Linux", "succeeded hello", "true", "1 of 1 succeeded"];

let folder: string;
let plane: TestStack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-readme-"));
  plane = await startTestStack();
});
afterAll(async () => {
  await plane?.close();
  await rm(folder, { recursive: true });
});

async function run(source: string, entry: string, name: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, source.replaceAll('"reeve/client"', JSON.stringify(join(repositoryRoot, "client", entry))));
  const own = { REEVE_URL: plane.registry.url, REEVE_TOKEN: plane.tokens.operator };
  const env = Object.entries({ ...nodeEnv(), ...own }).map((entry) => entry.join("="));
  const { code, output } = await runTool("env", [...env, process.execPath, file], folder);
  expect(code, output).toBe(0);
  return output.trim();
}

test("each example of the client's README runs as it is, also over fetch", async () => {
  const readme = await readFile(join(repositoryRoot, "client/README.md"), "utf8");
  const examples = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, source = ""]) => source);
  expect(examples).toHaveLength(PRINTED.length);
  for (const [index, source] of examples.entries()) {
    for (const entry of ["index.ts", "web.ts"]) {
      const lines = (await run(source, entry, `${index}-${entry}`)).split("\n");
      expect(
        lines.findLast((line) => line !== ""),
        `example ${index} with ${entry}`,
      ).toBe(PRINTED[index]);
    }
  }
});
