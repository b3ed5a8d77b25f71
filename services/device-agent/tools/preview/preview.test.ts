import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { DockerExecRequestSchema } from "../../../../gen/ts/reeve/tools/v1/docker_pb.ts";
import {
  DeleteRequestSchema,
  EditRequestSchema,
  MoveRequestSchema,
  UndoRequestSchema,
  WriteMode,
  WriteRequestSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { InstallRequestSchema } from "../../../../gen/ts/reeve/tools/v1/package_pb.ts";
import { KillRequestSchema } from "../../../../gen/ts/reeve/tools/v1/process_pb.ts";
import type { PreviewFact } from "../../../../lib/tool/preview.ts";
import { parseAptSimulation, parseAptSizes } from "../package/parse.ts";
import { startTestEngine } from "../testing/container-engine.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";
import { createDockerPreviews } from "./docker.ts";
import { fileSystemPreviews } from "./file-system.ts";
import { lineDiff } from "./line-diff.ts";
import { packagePreviews } from "./package.ts";
import { createProcessPreviews } from "./process.ts";

const onPath = (program: string) =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, program)));

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const textOf = (facts: readonly PreviewFact[] | undefined) =>
  (facts ?? []).map(({ name, value }) => `${name}: ${value}`).join("\n");
const tools = fileToolsIn(() => test.context);

describe("the lines of a change", () => {
  it.each([
    ["a\nb\nc", "a\nB\nc", "@@ from line 1 @@\n a\n-b\n+B\n c"],
    ["", "new", "@@ from line 1 @@\n-\n+new"],
    ["1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n6\n7", "@@ from line 4 @@\n 4\n 5\n 6\n+7"],
    ["x\nx\nx", "x\nx", "@@ from line 1 @@\n x\n x\n-x"],
  ])("of %j and %j", (before, after, expected) => expect(lineDiff(before, after)).toBe(expected));
});

describe("a file's preview", () => {
  const write = (text: string, mode: WriteMode = WriteMode.REPLACE) =>
    fileSystemPreviews.write?.(create(WriteRequestSchema, { path: at("a"), text, mode }), test.context);

  it("says what has the name, and which lines would change", async () => {
    expect(textOf(await write("x"))).toBe("file: nothing has this name");
    writeFileSync(at("a"), "one\ntwo\n");
    const shown = await write("one\n2\n");
    expect(textOf(shown)).toMatch(
      /^file: a file of 8 bytes, permissions 0644, owner \d+:\d+\ncontent of file: SHA-256 [0-9a-f]{64}\n/,
    );
    expect(textOf(shown)).toContain("-two\n+2");
    expect(textOf(await write("three\n", WriteMode.APPEND))).toContain("+three");
    expect(shown?.filter(({ isContent }) => isContent).map(({ name }) => name)).toEqual(["content of file", "change"]);
  });

  it("shows no secret of it, and still differs with it", async () => {
    const key = (letter: string) => `AWS_SECRET_ACCESS_KEY=${letter.repeat(40)}\nsame\n`;
    writeFileSync(at("a"), key("A"));
    const before = await write("same\n");
    expect(textOf(before)).not.toContain("AAAAAAAA");
    writeFileSync(at("a"), key("B"));
    expect(textOf(await write("same\n"))).not.toBe(textOf(before));
  });

  it("makes no folder, and is of nothing outside of the roots", async () => {
    const path = at("missing/a");
    const asked = fileSystemPreviews.write?.(create(WriteRequestSchema, { path, createFolders: true }), test.context);
    expect((await faultOf(asked ?? expect.fail())).reason).toBe(ErrorReason.TARGET_NOT_FOUND);
    expect(existsSync(at("missing"))).toBe(false);
    const outside = fileSystemPreviews.delete?.(create(DeleteRequestSchema, { path: "/etc/passwd" }), test.context);
    expect((await faultOf(outside ?? expect.fail())).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
  });

  it("of an edit that has no place says what editing would", async () => {
    writeFileSync(at("a"), "one\n");
    const input = create(EditRequestSchema, { path: at("a"), oldText: "two", newText: "2" });
    const asked = fileSystemPreviews.edit?.(input, test.context);
    expect((await faultOf(asked ?? expect.fail())).reason).toBe(ErrorReason.PRECONDITION_CHANGED);
  });

  it("of a folder says how much is in it, and changes with anything in it", async () => {
    mkdirSync(at("folder/inner"), { recursive: true });
    writeFileSync(at("folder/inner/a"), "12345");
    const ask = () =>
      fileSystemPreviews.delete?.(create(DeleteRequestSchema, { path: at("folder"), recursive: true }), test.context);
    const before = textOf(await ask());
    expect(before).toContain("size of file: 1 files and 1 folders, 5 bytes");
    writeFileSync(at("folder/inner/a"), "54321");
    expect(textOf(await ask())).not.toBe(before);
  });

  it("of a move says what is moved and what would be replaced", async () => {
    writeFileSync(at("a"), "1");
    symlinkSync("a", at("link"));
    const move = (to: string) =>
      fileSystemPreviews.move?.(create(MoveRequestSchema, { path: at("a"), to }), test.context);
    expect(textOf(await move(at("b")))).toContain("what has the new name: nothing has this name");
    expect(textOf(await move(at("link")))).toContain("what has the new name: a symbolic link to a");
    expect(textOf(await move(at("none/b")))).toContain("what has the new name: nothing: its folder does not exist");
  });

  it("of an undo says what is put back", async () => {
    writeFileSync(at("a"), "before");
    await tools.write({ path: at("a"), text: "after" });
    const undo = (call: string) => fileSystemPreviews.undo?.(create(UndoRequestSchema, { call }), test.context);
    expect(textOf(await undo(tools.last()))).toBe(`puts back: ${at("a")}: file becomes file`);
    expect(textOf(await undo("none"))).toContain("nothing is kept of this call");
  });
});

it("a process that has ended has a preview that says so", async () => {
  const facts = await createProcessPreviews().kill?.(create(KillRequestSchema, { pid: 4_194_304 }), test.context);
  expect(textOf(facts)).toBe("process: there is none with this id");
});

describe.runIf(onPath("docker"))("a container's preview", () => {
  it("is its name, image and state, or that there is none", async () => {
    await using engine = await startTestEngine(at("engine.sock"));
    const docker = createDockerPreviews({ env: { DOCKER_HOST: `unix://${engine.socket}` } });
    const ask = (container: string) =>
      docker.exec?.(create(DockerExecRequestSchema, { container, argv: ["ls"] }), test.context);
    expect(textOf(await ask("web"))).toContain(`container: web (${"0123456789abcdef".repeat(4)})`);
    expect(textOf(await ask("web"))).toContain(
      `image: nginx:1 (sha256:${"ab".repeat(32)})\nstate: running\nstarted: 2023-11-14T22:13:20Z`,
    );
    expect(textOf(await ask("stopped"))).toContain("state: exited");
    expect(textOf(await ask("nobody"))).toBe("container: there is none with this name");
    expect(engine.asked).toEqual([]);
  });
});

describe("an install's preview", () => {
  it("reads what apt says it would do", () => {
    const said =
      "Inst a (1.0-1 Debian:12/stable [amd64])\nInst b [0.9] (1.1 Debian:12/stable [all]) []\nConf a (1.0-1 x [all])\n";
    expect(parseAptSimulation(said)).toEqual([
      { name: "a", version: "1.0-1", old: "" },
      { name: "b", version: "1.1", old: "0.9" },
    ]);
    const sizes = parseAptSizes(
      "Package: a\nVersion: 1.0-1\nInstalled-Size: 7\nSize: 12\n\nPackage: b\nVersion: 1.1\n",
    );
    expect([...sizes]).toEqual([["a=1.0-1", 12]]);
  });

  it.runIf(onPath("apt-get"))("installs nothing, and says so of what is installed", async () => {
    const ask = (name: string) =>
      packagePreviews.install?.(create(InstallRequestSchema, { packages: [name] }), test.context);
    expect(textOf(await ask("base-files"))).toMatch(/^package manager: apt\ninstalls: /);
    expect((await faultOf(ask("reeve-no-such-package") ?? expect.fail())).reason).toBe(ErrorReason.TOOL_FAILED);
  });
});
