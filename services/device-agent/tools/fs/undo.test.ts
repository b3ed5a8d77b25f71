import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { WriteMode } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { UNDO_BOUNDS } from "../../undo/change.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";

const { PRECONDITION_CHANGED, TARGET_NOT_FOUND, PATH_OUTSIDE_ROOTS } = ErrorReason;

let test: TestContext;
let context: TestContext["context"];
beforeEach(() => {
  test = createTestContext();
  context = test.context;
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const tools = fileToolsIn(() => context);

/** Everything below the folder: paths with permissions and content. */
function picture(folder = test.folder, prefix = ""): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const [path, name] = [join(folder, entry.name), prefix + entry.name];
      if (entry.isSymbolicLink()) return [`${name} -> ${readlinkSync(path)}`];
      const mode = (statSync(path).mode & 0o7777).toString(8);
      if (entry.isDirectory()) return [`${name}/ ${mode}`, ...picture(path, `${name}/`)];
      return [`${name} ${mode} ${readFileSync(path, "latin1")}`];
    });
}

function makeTree(): void {
  mkdirSync(at("d/e"), { recursive: true });
  writeFileSync(at("d/a"), "one", { mode: 0o600 });
  writeFileSync(at("d/e/b"), Buffer.of(0, 255, 10));
  symlinkSync("/etc", at("d/link"));
  chmodSync(at("d/e"), 0o750);
  writeFileSync(at("f"), "old", { mode: 0o640 });
}

function replaceBy(make: () => void): void {
  rmSync(at("f"));
  make();
}

function swapFolder(): void {
  renameSync(at("g"), at("h"));
  mkdirSync(at("g"));
}

/** Runs a call, and undoes it. */
async function undone(action: () => Promise<{ notUndoable?: string }>) {
  makeTree();
  const before = picture();
  const { notUndoable } = await action();
  expect(notUndoable).toBeUndefined();
  const call = tools.last();
  const after = picture();
  expect(after).not.toEqual(before);
  const answer = await tools.undo(call);
  expect(picture()).toEqual(before);
  return { answer, call, before, after };
}

const CALLS: [string, () => Promise<{ notUndoable?: string }>][] = [
  ["a replaced file", () => tools.write({ path: at("f"), text: "new" })],
  ["a created file", () => tools.write({ path: at("new"), text: "new", mode: WriteMode.CREATE })],
  ["an append", () => tools.write({ path: at("f"), text: "er", mode: WriteMode.APPEND })],
  ["an edit", () => tools.edit({ path: at("f"), oldText: "l", newText: "LL" })],
  ["a move", () => tools.move({ path: at("f"), to: at("d/g") })],
  ["the move of a folder", () => tools.move({ path: at("d"), to: at("moved") })],
  ["a deleted file", () => tools.delete({ path: at("f") })],
  ["a deleted link", () => tools.delete({ path: at("d/link") })],
  ["a deleted tree", () => tools.delete({ path: at("d"), recursive: true })],
];

describe("undo", () => {
  it.each(CALLS)("puts back %s, and is itself undone", async (_, action) => {
    const { after, answer } = await undone(action);
    expect(answer.changed).toBeGreaterThan(0n);
    expect(answer.notUndoable).toBeUndefined();
    await tools.undo(tools.last());
    expect(picture()).toEqual(after);
  });

  it("puts back what a move replaced", async () => {
    await undone(() => tools.move({ path: at("d/a"), to: at("f"), overwrite: true }));
  });

  it("says which paths it changed, and does nothing the second time", async () => {
    const { answer, call } = await undone(() => tools.delete({ path: at("d"), recursive: true }));
    expect(answer).toMatchObject({ paths: ["d", "d/a", "d/e", "d/e/b", "d/link"].map(at), changed: 5n });
    expect(await tools.undo(call)).toEqual({});
  });

  it.each([
    ["was written", () => writeFileSync(at("f"), "other")],
    ["was deleted", () => rmSync(at("f"))],
    ["is a link", () => replaceBy(() => symlinkSync("d/a", at("f")))],
    ["is a folder", () => replaceBy(() => mkdirSync(at("f")))],
  ])("changes nothing where a file %s since", async (_, change) => {
    makeTree();
    await tools.write({ path: at("f"), text: "new" });
    const call = tools.last();
    change();
    const before = picture();
    expect(await faultOf(tools.undo(call))).toMatchObject({
      reason: PRECONDITION_CHANGED,
      metadata: { field: "call", path: at("f") },
    });
    expect(picture()).toEqual(before);
  });

  it.each([
    ["the file was written", "f", () => writeFileSync(at("g"), "other, and longer")],
    ["the old name is taken", "f", () => writeFileSync(at("f"), "new")],
    ["the folder is another", "d", () => swapFolder()],
  ])("moves nothing back where %s", async (_, path, change) => {
    makeTree();
    await tools.move({ path: at(path), to: at("g") });
    const call = tools.last();
    change();
    const before = picture();
    expect(await faultOf(tools.undo(call))).toMatchObject({ reason: PRECONDITION_CHANGED });
    expect(picture()).toEqual(before);
  });

  it("puts nothing of a tree back where one of its paths is taken", async () => {
    makeTree();
    await tools.delete({ path: at("d"), recursive: true });
    const call = tools.last();
    mkdirSync(at("d"));
    writeFileSync(at("d/a"), "another");
    const before = picture();
    expect(await faultOf(tools.undo(call))).toMatchObject({
      reason: PRECONDITION_CHANGED,
      metadata: { path: at("d/a") },
    });
    expect(picture()).toEqual(before);
  });

  it("finishes what a call that was cut off had begun", async () => {
    makeTree();
    const before = picture();
    await tools.delete({ path: at("d"), recursive: true });
    const call = tools.last();
    // As if it had come to delete only the rest.
    mkdirSync(at("d"));
    writeFileSync(at("d/a"), "one", { mode: 0o600 });
    expect(await tools.undo(call)).toMatchObject({ changed: 3n });
    expect(picture()).toEqual(before);
  });

  it("finishes an undo that was cut off", async () => {
    makeTree();
    const before = picture();
    await tools.move({ path: at("d/a"), to: at("f"), overwrite: true });
    const call = tools.last();
    // As if it had come to the first half.
    renameSync(at("f"), at("d/a"));
    expect(await tools.undo(call)).toMatchObject({ changed: 1n });
    expect(picture()).toEqual(before);
  });

  it("does not remove what was put into a folder since", async () => {
    makeTree();
    await tools.delete({ path: at("d"), recursive: true });
    await tools.undo(tools.last());
    const redo = tools.last();
    writeFileSync(at("d/e/new"), "kept");
    expect(await faultOf(tools.undo(redo))).toMatchObject({
      reason: PRECONDITION_CHANGED,
      metadata: { path: at("d/e/new") },
    });
    expect(existsSync(at("d/e/new"))).toBe(true);
  });

  it("goes by the roots as they are granted now, and through no link", async () => {
    makeTree();
    await tools.delete({ path: at("d/a") });
    const call = tools.last();
    using other = createTestContext();
    context = { ...test.context, roots: other.context.roots };
    expect(await faultOf(tools.undo(call))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
    context = test.context;
    rmSync(at("d"), { recursive: true });
    symlinkSync(other.folder, at("d"));
    expect(await faultOf(tools.undo(call))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
    expect(readdirSync(other.folder)).toEqual([]);
  });

  it("knows only calls that changed something here", async () => {
    makeTree();
    await tools.read({ path: at("f") });
    for (const call of [tools.last(), "none", "../../device.key"])
      expect(await faultOf(tools.undo(call))).toMatchObject({ reason: TARGET_NOT_FOUND, metadata: { field: "call" } });
  });
});

describe("what cannot be put back", () => {
  it("is a file with several names: undone it would have one, and could be read", async () => {
    using outside = createTestContext();
    writeFileSync(join(outside.folder, "f"), "secret");
    linkSync(join(outside.folder, "f"), at("hard"));
    const { notUndoable } = await tools.delete({ path: at("hard") });
    expect(notUndoable).toContain("hard links");
    expect(await faultOf(tools.undo(tools.last()))).toMatchObject({ reason: TARGET_NOT_FOUND });
    expect(existsSync(at("hard"))).toBe(false);
  });

  it("is what the caller asked not to be kept", async () => {
    makeTree();
    expect(await tools.delete({ path: at("f"), permanent: true })).toMatchObject({
      notUndoable: expect.stringContaining("nothing to be kept"),
    });
    expect(await faultOf(tools.undo(tools.last()))).toMatchObject({ reason: TARGET_NOT_FOUND });
  });

  it.each([
    ["a file", { fileBytes: 2 }],
    ["a call", { callBytes: 5 }],
    ["the number of files", { callThings: 3 }],
  ])("is more than %s may have; the call says so and goes on", async (_, changes) => {
    using small = createTestContext({
      write: [test.folder],
      undoBounds: { ...UNDO_BOUNDS, ...changes },
      workDir: test.folder,
    });
    context = small.context;
    makeTree();
    const { notUndoable } = await tools.delete({ path: at("d"), recursive: true });
    expect(notUndoable).toMatch(/more than|larger than/);
    expect(existsSync(at("d"))).toBe(false);
    expect(await faultOf(tools.undo(tools.last()))).toMatchObject({ reason: TARGET_NOT_FOUND });
  });
});
