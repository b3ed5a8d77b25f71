import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  FileType,
  ListRequestSchema,
  ReadRequestSchema,
  StatRequestSchema,
  WriteMode,
  WriteRequestSchema,
} from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { fileSystemTools } from "./file-system.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const read = (input: MessageInitShape<typeof ReadRequestSchema>) =>
  fileSystemTools.read(create(ReadRequestSchema, input), test.context);
const write = (input: MessageInitShape<typeof WriteRequestSchema>) =>
  fileSystemTools.write(create(WriteRequestSchema, input), test.context);
const list = (input: MessageInitShape<typeof ListRequestSchema>) =>
  fileSystemTools.list(create(ListRequestSchema, input), test.context);
const stat = (input: MessageInitShape<typeof StatRequestSchema>) =>
  fileSystemTools.stat(create(StatRequestSchema, input), test.context);

describe("read", () => {
  it("returns text, and bytes where the file is no text", async () => {
    writeFileSync(at("t"), "héllo");
    writeFileSync(at("b"), Buffer.of(0xff, 0xfe, 0));
    expect(await read({ path: at("t") })).toEqual({ text: "héllo", size: 6n, truncated: false });
    expect(await read({ path: at("b") })).toEqual({
      data: new Uint8Array([0xff, 0xfe, 0]),
      size: 3n,
      truncated: false,
    });
  });

  it("goes on where the last read ended, never in the middle of a character", async () => {
    const text = "aé€😀".repeat(50);
    writeFileSync(at("t"), text);
    let offset = 0n;
    let joined = "";
    for (let truncated = true; truncated; ) {
      const part = await read({ path: at("t"), offset, maxBytes: 7 });
      joined += part.text;
      offset += BigInt(Buffer.byteLength(part.text ?? ""));
      truncated = part.truncated ?? false;
    }
    expect(joined).toBe(text);
  });

  it("reads nothing behind the end", async () => {
    writeFileSync(at("t"), "abc");
    expect(await read({ path: at("t"), offset: 10n })).toMatchObject({ text: "", truncated: false });
  });

  it("reads at most 65536 bytes where nothing is asked for", async () => {
    writeFileSync(at("t"), "x".repeat(100_000));
    const { text, size, truncated } = await read({ path: at("t") });
    expect([text?.length, size, truncated]).toEqual([65_536, 100_000n, true]);
  });

  it("refuses a folder, a link, a secret and what is missing", async () => {
    symlinkSync("/etc/passwd", at("link"));
    writeFileSync(at(".env"), "A=b");
    expect((await faultOf(read({ path: test.folder }))).metadata).toMatchObject({ errno: "EISDIR" });
    expect((await faultOf(read({ path: at("link") }))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
    expect((await faultOf(read({ path: at(".env") }))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
    expect((await faultOf(read({ path: at("none") }))).reason).toBe(ErrorReason.TARGET_NOT_FOUND);
  });

  it("masks the part of a secret that it cuts, wherever it begins to read", async () => {
    const secret = `ghp_${"aB3dE5gH7jK9".repeat(3)}`;
    const text = `before ${secret} after\n`;
    writeFileSync(at("f"), text);
    expect((await read({ path: at("f") })).text).toBe(text);
    expect((await read({ path: at("f"), offset: 11n })).text).toBe(`${"*".repeat(secret.length - 4)} after\n`);
    let parts = "";
    for (let offset = 0n; offset < text.length; offset += 9n) {
      parts += (await read({ path: at("f"), offset, maxBytes: 9 })).text;
    }
    expect(parts).toBe(`before ${"*".repeat(secret.length)} after\n`);
  });

  it("refuses a file that has another name, which may lie outside", async () => {
    using other = createTestContext();
    writeFileSync(join(other.folder, "f"), "outside");
    linkSync(join(other.folder, "f"), at("hard"));
    const refused = await faultOf(read({ path: at("hard") }));
    expect(refused).toMatchObject({ reason: ErrorReason.PATH_OUTSIDE_ROOTS, metadata: { path: at("hard") } });
    expect(refused.message).toContain("hard links");
  });
});

describe("write", () => {
  const SHA_OF_AB = "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603";

  it("creates a file and says what it wrote", async () => {
    const answer = await write({ path: at("f"), text: "ab" });
    expect(answer).toEqual({ bytesWritten: 2n, created: true, sha256: SHA_OF_AB });
    expect(readFileSync(at("f"), "utf8")).toBe("ab");
    expect(statSync(at("f")).mode & 0o777).toBe(0o644);
  });

  it("writes bytes, with the permissions asked for", async () => {
    await write({ path: at("f"), data: Uint8Array.of(0, 255), permissions: 0o600 });
    expect([...readFileSync(at("f"))]).toEqual([0, 255]);
    expect(statSync(at("f")).mode & 0o777).toBe(0o600);
  });

  it("replaces atomically: an open reader keeps the old file, and the permissions stay", async () => {
    writeFileSync(at("f"), "old");
    chmodSync(at("f"), 0o640);
    const before = statSync(at("f")).ino;
    expect(await write({ path: at("f"), text: "new" })).toMatchObject({ created: false });
    expect(readFileSync(at("f"), "utf8")).toBe("new");
    expect(statSync(at("f")).ino).not.toBe(before);
    expect(statSync(at("f")).mode & 0o777).toBe(0o640);
    expect(readdirSync(test.folder)).toEqual(["f"]);
  });

  it("appends, and creates only what is missing", async () => {
    const { APPEND, CREATE } = WriteMode;
    expect(await write({ path: at("f"), text: "a", mode: APPEND })).toMatchObject({ created: true });
    expect(await write({ path: at("f"), text: "b", mode: APPEND })).toMatchObject({ created: false, bytesWritten: 1n });
    expect(readFileSync(at("f"), "utf8")).toBe("ab");
    const fault = await faultOf(write({ path: at("f"), text: "c", mode: CREATE }));
    expect(fault).toMatchObject({ reason: ErrorReason.OS_REFUSED, metadata: { field: "path", errno: "EEXIST" } });
    expect(readFileSync(at("f"), "utf8")).toBe("ab");
  });

  it("makes folders only where asked to", async () => {
    const path = at("a/b/c");
    expect((await faultOf(write({ path, text: "x" }))).reason).toBe(ErrorReason.TARGET_NOT_FOUND);
    await write({ path, text: "x", createFolders: true });
    expect(readFileSync(path, "utf8")).toBe("x");
  });

  it.each([WriteMode.REPLACE, WriteMode.CREATE, WriteMode.APPEND])("writes through no link (mode %d)", async (mode) => {
    using other = createTestContext();
    writeFileSync(join(other.folder, "f"), "kept");
    symlinkSync(join(other.folder, "f"), at("link"));
    symlinkSync(other.folder, at("dir"));
    symlinkSync(join(other.folder, "new"), at("dangling"));
    for (const name of ["link", "dir/f", "dir/new", "dangling"])
      await faultOf(write({ path: at(name), text: "x", mode }));
    expect(readFileSync(join(other.folder, "f"), "utf8")).toBe("kept");
    expect(existsSync(join(other.folder, "new"))).toBe(false);
  });

  it("appends to no file that has another name, and replaces one without touching the other", async () => {
    using other = createTestContext();
    writeFileSync(join(other.folder, "f"), "kept");
    linkSync(join(other.folder, "f"), at("hard"));
    const append = write({ path: at("hard"), text: "x", mode: WriteMode.APPEND });
    expect((await faultOf(append)).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
    await write({ path: at("hard"), text: "new", mode: WriteMode.REPLACE });
    expect([readFileSync(at("hard"), "utf8"), readFileSync(join(other.folder, "f"), "utf8")]).toEqual(["new", "kept"]);
  });

  it("refuses a folder in the file's place and leaves nothing behind", async () => {
    mkdirSync(at("d"));
    expect((await faultOf(write({ path: at("d"), text: "x" }))).metadata).toMatchObject({ errno: "EISDIR" });
    expect(readdirSync(test.folder)).toEqual(["d"]);
  });
});

describe("list", () => {
  beforeEach(() => {
    mkdirSync(at("b/sub"), { recursive: true });
    mkdirSync(at(".ssh"));
    writeFileSync(at(".ssh/id_rsa"), "k");
    writeFileSync(at("a"), "12");
    writeFileSync(at("b/sub/deep"), "1");
    writeFileSync(at(".hidden"), "");
    symlinkSync("/etc", at("link"));
  });
  const paths = (answer: Awaited<ReturnType<typeof list>>) => answer.entries?.map(({ path }) => path);

  it("lists a folder's own entries by name", async () => {
    const answer = await list({ path: test.folder });
    expect(paths(answer)).toEqual([".hidden", ".ssh", "a", "b", "link"]);
    expect(answer.entries?.map(({ type }) => type)).toEqual([1, 2, 1, 2, 3]);
    expect(answer.entries?.[2]).toMatchObject({ type: FileType.FILE, size: 2n });
  });

  it("goes down, through no link and into no secret folder", async () => {
    const answer = await list({ path: test.folder, depth: 16 });
    expect(paths(answer)).toEqual([".hidden", ".ssh", "a", "b", "b/sub", "b/sub/deep", "link"]);
  });

  it("leaves out hidden entries, and says when there are more", async () => {
    expect(paths(await list({ path: test.folder, depth: 2, skipHidden: true }))).toEqual(["a", "b", "b/sub", "link"]);
    const cut = await list({ path: test.folder, maxEntries: 2 });
    expect([paths(cut), cut.truncated]).toEqual([[".hidden", ".ssh"], true]);
    expect((await list({ path: test.folder, maxEntries: 5 })).truncated).toBe(false);
  });

  it("refuses a file", async () => {
    expect((await faultOf(list({ path: at("a") }))).metadata).toMatchObject({ errno: "ENOTDIR" });
  });

  it("ends when the call is canceled", async () => {
    const input = create(ListRequestSchema, { path: test.folder });
    const context = { ...test.context, signal: AbortSignal.abort() };
    expect((await faultOf(fileSystemTools.list(input, context))).reason).toBe(ErrorReason.CANCELED);
  });
});

describe("stat", () => {
  it("returns a file's facts", async () => {
    writeFileSync(at("f"), "12345", { mode: 0o600 });
    const answer = await stat({ path: at("f") });
    expect(answer).toMatchObject({
      type: FileType.FILE,
      size: 5n,
      permissions: "0600",
      uid: process.getuid?.(),
      linkTarget: "",
    });
    expect(Number(answer.modifyTime?.seconds)).toBe(Math.floor(statSync(at("f")).mtimeMs / 1000));
  });

  it("describes a folder, the root itself, and a link as itself", async () => {
    symlinkSync("/etc/passwd", at("link"));
    expect(await stat({ path: test.folder })).toMatchObject({ type: FileType.DIRECTORY });
    expect(await stat({ path: at("link") })).toMatchObject({ type: FileType.SYMLINK, linkTarget: "/etc/passwd" });
  });

  it("refuses what lies outside", async () => {
    expect((await faultOf(stat({ path: "/etc/passwd" }))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
  });
});
