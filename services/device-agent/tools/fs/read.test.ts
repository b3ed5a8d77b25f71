import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { TextEncoding } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const { read } = fileToolsIn(() => test.context);

describe("read from a line", () => {
  it("begins there, says where that is, and stops after as many lines as are asked for", async () => {
    writeFileSync(at("f"), "one\ntwo\nthree\nfour");
    const path = at("f");
    expect(await read({ path, firstLine: 2n })).toMatchObject({
      text: "two\nthree\nfour",
      offset: 4n,
      truncated: false,
    });
    expect(await read({ path, firstLine: 2n, maxLines: 1 })).toMatchObject({
      text: "two\n",
      offset: 4n,
      truncated: true,
    });
    expect(await read({ path, maxLines: 2 })).toEqual({ text: "one\ntwo\n", size: 18n, truncated: true });
    expect(await read({ path, firstLine: 9n })).toMatchObject({ text: "", offset: 18n, truncated: false });
  });

  it("finds one far into a file", async () => {
    writeFileSync(at("f"), `${"x".repeat(99)}\n`.repeat(40_000));
    expect(await read({ path: at("f"), firstLine: 30_001n, maxLines: 1 })).toMatchObject({ offset: 3_000_000n });
  });

  it("does not show the part of a secret that it cuts", async () => {
    const body = `${"MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn".repeat(2)}\n`.repeat(10);
    writeFileSync(at("f"), `-----BEGIN RSA PRIVATE KEY-----\n${body}-----END RSA PRIVATE KEY-----\n`);
    const { text } = await read({ path: at("f"), firstLine: 3n, maxLines: 2 });
    expect(text).not.toContain("MIIE");
  });
});

describe("read from the end", () => {
  it("counts back, and not before the beginning", async () => {
    writeFileSync(at("f"), "abcdef");
    expect(await read({ path: at("f"), fromEnd: true, offset: 2n })).toMatchObject({ text: "ef", offset: 4n });
    expect(await read({ path: at("f"), fromEnd: true, offset: 99n })).toMatchObject({ text: "abcdef", offset: 0n });
  });
});

describe("read in an encoding", () => {
  it.each([
    [TextEncoding.LATIN1, Buffer.from("grün", "latin1")],
    [TextEncoding.UTF16LE, Buffer.from("grün", "utf16le")],
    [TextEncoding.UTF16BE, Buffer.from("grün", "utf16le").swap16()],
    [TextEncoding.UTF8, Buffer.from("grün")],
  ])("gives the text (%d)", async (encoding, bytes) => {
    writeFileSync(at("f"), bytes);
    expect(await read({ path: at("f"), encoding })).toMatchObject({ text: "grün", truncated: false });
  });

  it.each([TextEncoding.UTF16LE, TextEncoding.UTF16BE])("goes on where the last read ended (%d)", async (encoding) => {
    const text = "aé€😀".repeat(50);
    const bytes = Buffer.from(text, "utf16le");
    writeFileSync(at("f"), encoding === TextEncoding.UTF16LE ? bytes : bytes.swap16());
    let [joined, offset] = ["", 0n];
    for (let truncated = true; truncated; ) {
      const part = await read({ path: at("f"), offset, maxBytes: 7, encoding });
      joined += part.text;
      offset += BigInt(Buffer.byteLength(part.text ?? "", "utf16le"));
      truncated = part.truncated ?? false;
    }
    expect(joined).toBe(text);
  });

  it.each([TextEncoding.UTF16LE, TextEncoding.UTF16BE])(
    "masks the part of a secret that it cuts (%d)",
    async (encoding) => {
      const secret = `ghp_${"aB3dE5gH7jK9".repeat(3)}`;
      const bytes = Buffer.from(`before ${secret} after`, "utf16le");
      writeFileSync(at("f"), encoding === TextEncoding.UTF16LE ? bytes : bytes.swap16());
      const { text } = await read({ path: at("f"), offset: 24n, encoding });
      expect(text).toBe(`${"*".repeat(secret.length - 5)} after`);
    },
  );

  it("gives bytes for what is no text, and counts no lines in UTF-16", async () => {
    writeFileSync(at("f"), Buffer.of(0x61, 0, 0xd8));
    expect(await read({ path: at("f"), encoding: TextEncoding.UTF16LE })).toMatchObject({ size: 3n });
    expect((await read({ path: at("f"), encoding: TextEncoding.UTF16LE })).text).toBeUndefined();
    const lines = read({ path: at("f"), encoding: TextEncoding.UTF16LE, firstLine: 2n });
    expect(await faultOf(lines)).toMatchObject({ reason: ErrorReason.INVALID_INPUT });
  });
});
