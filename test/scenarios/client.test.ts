import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { runTool, toolOutput } from "../../scripts/run-tool.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

/** What the package is built from. */
const SOURCES = ["package.json", "package-lock.json", "LICENSE"];
const COMPILER_SETTINGS = ["buf.yaml", "tsconfig.json", "tsconfig.client.json"];
const FOLDERS = ["bin", "cli", "client", "gen", "lib", "proto", "scripts", "services"];

/** What a program that uses the client has besides it. */
const BESIDE = ["@bufbuild", "@connectrpc", "@types", "undici-types"];

let folder: string;
/** A program of another author, with the package installed. */
let app: string;
let plane: TestStack | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-client-"));
  app = join(folder, "app");
  await install();
  plane = await startTestStack();
});
afterAll(async () => {
  await plane?.close();
  await rm(folder, { recursive: true });
});

function started(): TestStack {
  if (plane === undefined) throw new Error("there is no control plane outside of tests");
  return plane;
}

/** Packs the package from a copy, so that nothing is built in the repository, and installs what was packed. */
async function install(): Promise<void> {
  const copy = join(folder, "copy");
  for (const path of [...SOURCES, ...COMPILER_SETTINGS, ...FOLDERS])
    await cp(join(repositoryRoot, path), join(copy, path), { recursive: true });
  await symlink(join(repositoryRoot, "node_modules"), join(copy, "node_modules"));
  await toolOutput("npm", ["pack", "--pack-destination", folder], copy);
  const [packed = ""] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  const installed = join(app, "node_modules", "reeve");
  await mkdir(installed, { recursive: true });
  await toolOutput("tar", ["-xzf", join(folder, packed), "-C", installed, "--strip-components", "1"]);
  for (const name of BESIDE) {
    await symlink(join(repositoryRoot, "node_modules", name), join(app, "node_modules", name));
  }
  await cp(join(repositoryRoot, "examples"), app, { recursive: true });
  await writeFile(join(app, "package.json"), '{ "type": "module" }');
  const compilerOptions = { module: "nodenext", target: "esnext", strict: true, noEmit: true, types: ["node"] };
  await writeFile(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
}

describe("the packed client", () => {
  test("has types for others to compile against", async () => {
    const { code, output } = await runTool("tsc", ["-p", "."], app);
    expect(code, output).toBe(0);
  });

  test("comes with every proto as a FileDescriptorSet", async () => {
    const image = await readFile(join(app, "node_modules/reeve/dist/reeve.binpb"));
    const names = fromBinary(FileDescriptorSetSchema, image).file.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["reeve/tools/v1/shell.proto", "buf/validate/validate.proto"]));
  });

  test("runs the example: two governed calls, and a third that waits for a human", async () => {
    expect(await runExample(started().tokens.operator)).toEqual({
      code: 0,
      lines: ["0 entries", "it runs Linux", expect.stringMatching(/^waits for approval \S+: reeve approval approve/)],
    });
  });

  test("names why a call was refused", async () => {
    const { code, lines } = await runExample("not-a-token");
    expect(code).toBe(1);
    expect(lines[0]).toMatch(/^unauthenticated: /);
  });
});

async function runExample(token: string): Promise<{ code: number; lines: string[] }> {
  const env = { REEVE_REGISTRY_URL: started().registry.url, REEVE_TOKEN: token };
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const { code, output } = await runTool(
    "env",
    [...words, process.execPath, "typed-client.ts", "this", started().workFolder],
    app,
  );
  return { code, lines: output.trim().split("\n") };
}
