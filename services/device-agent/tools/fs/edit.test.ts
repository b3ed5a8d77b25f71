import { chmodSync, linkSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { TextEncoding } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";
import { occurrences } from "./occurrences.ts";

const { PRECONDITION_CHANGED, OS_REFUSED, PATH_OUTSIDE_ROOTS } = ErrorReason;

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const { edit } = fileToolsIn(() => test.context);
const text = (name: string): string => readFileSync(at(name), "utf8");

describe("edit", () => {
  it("replaces a text that stands there once, and says where", async () => {
    writeFileSync(at("f"), "one\ntwo\nthree\n");
    const answer = await edit({ path: at("f"), oldText: "two", newText: "2" });
    expect(answer).toMatchObject({ replaced: 1, line: 2n, size: 12n });
    expect(answer.notUndoable).toBeUndefined();
    expect(text("f")).toBe("one\n2\nthree\n");
  });

  it("changes nothing where the text is missing, or stands more often than expected", async () => {
    writeFileSync(at("f"), "aa bb aa");
    for (const oldText of ["aa", "cc", "aa  bb"])
      expect(await faultOf(edit({ path: at("f"), oldText, newText: "x" }))).toMatchObject({
        reason: PRECONDITION_CHANGED,
        metadata: { field: "oldText", path: at("f") },
      });
    const three = edit({ path: at("f"), oldText: "aa", newText: "x", expectedCount: 3 });
    expect((await faultOf(three)).message).toContain("2 times, not 3");
    expect(text("f")).toBe("aa bb aa");
  });

  it("replaces all where as many are found as expected, and never places that overlap", async () => {
    writeFileSync(at("f"), "aa bb aa");
    expect(await edit({ path: at("f"), oldText: "aa", newText: "aaa", expectedCount: 2 })).toMatchObject({
      replaced: 2,
    });
    expect(text("f")).toBe("aaa bb aaa");
    writeFileSync(at("f"), "aaa");
    for (const expectedCount of [1, 2])
      await faultOf(edit({ path: at("f"), oldText: "aa", newText: "x", expectedCount }));
    expect(text("f")).toBe("aaa");
  });

  it("takes the text for a text, not for a pattern or a template", async () => {
    writeFileSync(at("f"), "a.c $& abc");
    await edit({ path: at("f"), oldText: "a.c", newText: "$& $1 \\n" });
    expect(text("f")).toBe("$& $1 \\n $& abc");
  });

  it("keeps permissions and leaves nothing behind", async () => {
    writeFileSync(at("f"), "a");
    chmodSync(at("f"), 0o750);
    await edit({ path: at("f"), oldText: "a", newText: "" });
    expect(statSync(at("f")).mode & 0o7777).toBe(0o750);
    expect(readdirSync(test.folder)).toEqual(["f"]);
  });

  it("keeps CR LF where all lines end so, and mixed ends as they are", async () => {
    writeFileSync(at("f"), "a\r\nb\r\nc\r\n");
    await edit({ path: at("f"), oldText: "a\nb", newText: "x\ny\nz" });
    expect(text("f")).toBe("x\r\ny\r\nz\r\nc\r\n");
    writeFileSync(at("f"), "a\r\nb\nc\n");
    await edit({ path: at("f"), oldText: "b\nc", newText: "d\ne" });
    expect(text("f")).toBe("a\r\nd\ne\n");
  });

  it.each([
    ["a mark of UTF-8", Buffer.from("\ufeffgrün\n"), TextEncoding.UNSPECIFIED, Buffer.from("\ufeffgrau\n")],
    ["UTF-16 by its mark", Buffer.from("\ufeffgrün", "utf16le"), 0, Buffer.from("\ufeffgrau", "utf16le")],
    ["UTF-16, high byte first", Buffer.from("grün", "utf16le").swap16(), 3, Buffer.from("grau", "utf16le").swap16()],
    ["Latin-1", Buffer.from("grün", "latin1"), TextEncoding.LATIN1, Buffer.from("grau", "latin1")],
  ] as [string, Buffer, TextEncoding, Buffer][])("keeps %s", async (_, before, encoding, after) => {
    writeFileSync(at("f"), before);
    await edit({ path: at("f"), oldText: "ün", newText: "au", encoding });
    expect(readFileSync(at("f"))).toEqual(after);
  });

  it("refuses what is no text, and characters that the encoding does not have", async () => {
    writeFileSync(at("f"), Buffer.of(0x61, 0xff, 0xfe));
    const errno = { reason: OS_REFUSED, metadata: { errno: "EILSEQ" } };
    expect(await faultOf(edit({ path: at("f"), oldText: "a", newText: "b" }))).toMatchObject(errno);
    const latin = edit({ path: at("f"), oldText: "a", newText: "€", encoding: TextEncoding.LATIN1 });
    expect(await faultOf(latin)).toMatchObject(errno);
    expect(readFileSync(at("f"))).toEqual(Buffer.of(0x61, 0xff, 0xfe));
  });

  it("refuses a file with several names, a secret, and one that is too large", async () => {
    writeFileSync(at("f"), "a");
    linkSync(at("f"), at("hard"));
    writeFileSync(at(".env"), "a");
    writeFileSync(at("large"), Buffer.alloc(8 * 1024 * 1024 + 1, "a"));
    for (const name of ["hard", ".env"])
      expect(await faultOf(edit({ path: at(name), oldText: "a", newText: "b" }))).toMatchObject({
        reason: PATH_OUTSIDE_ROOTS,
      });
    expect(await faultOf(edit({ path: at("large"), oldText: "b", newText: "c" }))).toMatchObject({
      metadata: { errno: "EFBIG" },
    });
  });
});

describe("occurrences", () => {
  it.each([
    ["abcabc", "abc", [0, 3]],
    ["aaaa", "aa", [0, 1, 2]],
    ["ababab", "abab", [0, 2]],
    ["a", "ab", []],
    ["a😀b😀", "😀", [1, 4]],
  ])("in %j of %j are at %j", (whole, part, places) => {
    expect(occurrences(whole, part, 10)).toEqual(places);
  });

  it("are found in linear time where a plain search takes a product of lengths", () => {
    const whole = "a".repeat(4_000_000);
    const begun = performance.now();
    expect(occurrences(whole, `b${"a".repeat(200_000)}`, 2)).toEqual([]);
    // Quadratic it would be hours.
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
