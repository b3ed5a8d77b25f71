import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { runTool, toolOutput } from "../../scripts/run-tool.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

const TESTDATA = join(import.meta.dirname, "testdata");

/** Debian's, which are in no other place. */
const PYTHON = "/usr/bin/python3";
const PLUGIN = "/usr/bin/grpc_python_plugin";
const PROTOC = "/usr/bin/protoc";
const missing = await missingForPython();

let folder: string;
let plane: TestStack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-proto-"));
  await cp(join(repositoryRoot, "proto"), join(folder, "proto"), { recursive: true });
  plane = await startTestStack();
});
afterAll(async () => {
  await plane?.close();
  await rm(folder, { recursive: true });
});

async function missingForPython(): Promise<string> {
  const wanted: [string, string[]][] = [
    [PYTHON, ["-c", "import grpc, google.protobuf"]],
    [PROTOC, ["--version"]],
    ["test", ["-x", PLUGIN]],
  ];
  for (const [program, args] of wanted) {
    const { code } = await runTool(program, args).catch(() => ({ code: 1 }));
    if (code !== 0) return `${program} ${args.join(" ")}`;
  }
  return "";
}

/** What the client printed, which calls the registry as an operator. */
async function resultOf(program: string, ...args: string[]): Promise<unknown> {
  const token = `REEVE_TOKEN=${plane.tokens.operator}`;
  const { code, stdout, output } = await runTool("env", [token, program, ...args], folder);
  expect(code, output).toBe(0);
  return JSON.parse(stdout);
}

describe("a copy of proto/ alone", () => {
  test("generates TypeScript by buf, which makes a governed call and reads a typed error", async () => {
    await toolOutput("buf", ["generate"], join(folder, "proto"));
    await symlink(join(repositoryRoot, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await toolOutput("buf", ["generate", "--template", typescriptTemplate], join(folder, "proto"));
    const source = await readFile(join(TESTDATA, "client.ts"), "utf8");
    await writeFile(join(folder, "client.ts"), source.replaceAll("../../../gen/", "./gen/"));
    expect(await resultOf(process.execPath, "client.ts", new URL(plane.registry.url).host)).toEqual({
      stdout: "governed\n",
      outside: [7, "PATH_OUTSIDE_ROOTS", "reeve", true],
      // Its length and its pattern.
      wrong: [3, ["path", "path"]],
    });
  });

  test.skipIf(missing !== "")(
    `generates Python by protoc, which does the same${missing && ` (there is no ${missing})`}`,
    async () => {
      await mkdir(join(folder, "py"));
      const protos = (await readdir(join(folder, "proto"), { recursive: true })).filter((path) =>
        path.endsWith(".proto"),
      );
      const plugin = `--plugin=protoc-gen-grpc_python=${PLUGIN}`;
      const outputs = ["--python_out=py", "--grpc_python_out=py"];
      await toolOutput(PROTOC, ["-I", "proto", ...outputs, plugin, ...protos], folder);
      await cp(join(TESTDATA, "client.py"), join(folder, "py/client.py"));
      expect(await resultOf(PYTHON, "py/client.py", new URL(plane.registry.url).host, plane.workFolder)).toEqual({
        stdout: "governed\n",
        outside: ["PERMISSION_DENIED", "PATH_OUTSIDE_ROOTS", "reeve", "ERROR_REASON_PATH_OUTSIDE_ROOTS"],
        wrong: ["INVALID_ARGUMENT", ["path", "path"]],
      });
    },
  );
});

/** As the folder's own, for a program that is run without a compiler. */
const typescriptTemplate = JSON.stringify({
  version: "v2",
  clean: true,
  plugins: [
    {
      local: "protoc-gen-es",
      out: "../gen/ts",
      strategy: "all",
      opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
    },
  ],
});
