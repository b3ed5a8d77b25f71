import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SearchLimit } from "../../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../../testing/context.ts";
import { fileToolsIn } from "../../testing/file-tools.ts";

let test: TestContext;
let context: TestContext["context"];
beforeEach(() => {
  test = createTestContext();
  context = test.context;
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const { search } = fileToolsIn(() => context);

function tree(files: Record<string, string | Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(at(path), ".."), { recursive: true });
    writeFileSync(at(path), content);
  }
}

interface Wanted {
  pattern: string;
  path?: string;
  literal?: boolean;
  ignoreCase?: boolean;
  globs?: string[];
  hidden?: boolean;
}

/** The matches as "path:line". */
async function found(input: Wanted): Promise<string[]> {
  const { matches } = await search({ path: test.folder, ...input });
  return (matches ?? []).map(({ path, line }) => `${path}:${line}`);
}

describe("search", () => {
  it("finds lines in all files below a folder, by path and line", async () => {
    tree({ "b/x": "one\ntwo one\nthree", a: "zero\r\none\r\n", "b/c/d": "one" });
    const answer = await search({ path: test.folder, pattern: "o.e" });
    expect(answer).toMatchObject({ files: 3n, skipped: 0n, stoppedBy: SearchLimit.UNSPECIFIED });
    expect(answer.matches?.map(({ path, line, text }) => [path, line, text])).toEqual([
      ["a", 2n, "one"],
      ["b/c/d", 1n, "one"],
      ["b/x", 1n, "one"],
      ["b/x", 2n, "two one"],
    ]);
  });

  it("searches one file by its name, and refuses what is no file", async () => {
    tree({ f: "a\nb\n" });
    symlinkSync("f", at("link"));
    execFileSync("mkfifo", [at("pipe")]);
    expect(await found({ path: at("f"), pattern: "b" })).toEqual(["f:2"]);
    expect(await faultOf(search({ path: at("link"), pattern: "b" }))).toMatchObject({
      reason: ErrorReason.PATH_OUTSIDE_ROOTS,
    });
    expect(await faultOf(search({ path: at("pipe"), pattern: "b" }))).toMatchObject({
      reason: ErrorReason.OS_REFUSED,
    });
    expect(await faultOf(search({ path: at("none"), pattern: "b" }))).toMatchObject({
      reason: ErrorReason.TARGET_NOT_FOUND,
    });
  });

  it("takes a text for a text, and case as it is asked to", async () => {
    tree({ f: "a.c\nabc\nA.C\n" });
    expect(await found({ pattern: "a.c" })).toEqual(["f:1", "f:2"]);
    expect(await found({ pattern: "a.c", literal: true })).toEqual(["f:1"]);
    expect(await found({ pattern: "a.c", literal: true, ignoreCase: true })).toEqual(["f:1", "f:3"]);
    expect(await found({ pattern: "^abc$" })).toEqual(["f:2"]);
  });

  it("returns the lines around a match", async () => {
    tree({ f: "1\n2\n3\n4\n5\n" });
    const { matches } = await search({ path: test.folder, pattern: "[25]", contextLines: 2 });
    expect(matches?.map(({ before, after }) => [before, after])).toEqual([
      [["1"], ["3", "4"]],
      [["3", "4"], []],
    ]);
  });

  it("passes over what is hidden, secret, binary, linked, or no file", async () => {
    const key = "word\n";
    tree({
      ".hidden/a": key,
      ".git/config": key,
      ".github/w.yml": key,
      ".env": key,
      "k/.ssh/config": key,
      "k/a.pem": key,
    });
    tree({ "k/id_rsa": key, bin: Buffer.from("\0word"), seen: key, "b/latin": Buffer.from("word é", "latin1") });
    tree({ wide: Buffer.from("\ufeffword", "utf16le") });
    symlinkSync("/etc", at("out"));
    symlinkSync("seen", at("link"));
    execFileSync("mkfifo", [at("pipe")]);
    using other = createTestContext();
    writeFileSync(join(other.folder, "f"), key);
    linkSync(join(other.folder, "f"), at("hard"));
    const shown = [".github/w.yml:1", "b/latin:1", "seen:1", "wide:1"];
    expect(await found({ pattern: "word" })).toEqual(shown);
    // Asked for what is hidden it still leaves out what is secret.
    expect(await found({ pattern: "word", hidden: true })).toEqual([
      ".git/config:1",
      ...shown.slice(0, 1),
      ".hidden/a:1",
      ...shown.slice(1),
    ]);
  });

  it("neither shows a secret nor says whether it matches", async () => {
    const secret = `ghp_${"aB3dE5gH7jK9".repeat(3)}`;
    const body = `${"MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn".repeat(2)}\n`.repeat(20);
    tree({ f: `token ${secret}\n`, key: `-----BEGIN RSA PRIVATE KEY-----\n${body}-----END RSA PRIVATE KEY-----\nend` });
    const { matches } = await search({ path: test.folder, pattern: "token" });
    expect(matches?.map(({ text }) => text)).toEqual([`token ${"*".repeat(secret.length)}`]);
    expect(await found({ pattern: "ghp_aB3" })).toEqual([]);
    expect(await found({ pattern: "MIIEp" })).toEqual([]);
    const around = await search({ path: at("key"), pattern: "^end$", contextLines: 3 });
    expect(JSON.stringify(around.matches?.map(({ before }) => before))).not.toContain("MIIE");
  });

  it("cuts a long line to where the match is", async () => {
    tree({ f: `${"a".repeat(3000)}needle${"b".repeat(3000)}\n${"c".repeat(20_000)}needle` });
    const { matches } = await search({ path: test.folder, pattern: "needle" });
    expect(matches?.map(({ line, text }) => [line, text?.length, text?.endsWith("needle")])).toEqual([[1n, 500, true]]);
  });
});

describe("globs", () => {
  it.each([
    [["*.ts"], ["a.ts", "d/b.ts", "d/e/c.ts"]],
    [["d/*.ts"], ["d/b.ts"]],
    [["d/**"], ["d/b.ts", "d/e/c.ts", "d/e/x.js"]],
    [["**/e/*"], ["d/e/c.ts", "d/e/x.js"]],
    [["*.{js,md}"], ["d/e/x.js", "r.md"]],
    [["!*.ts"], ["d/e/x.js", "r.md"]],
    [["*.ts", "!d/**"], ["a.ts"]],
    [["!d"], ["a.ts", "r.md"]],
    [["?.md"], ["r.md"]],
    [["r.+"], []],
  ])("%j are %j", async (globs, paths) => {
    tree({ "a.ts": "x", "d/b.ts": "x", "d/e/c.ts": "x", "d/e/x.js": "x", "r.md": "x" });
    expect(await found({ pattern: "x", globs })).toEqual(paths.map((path) => `${path}:1`));
  });

  it("are refused where they cannot be read", async () => {
    expect(await faultOf(search({ path: test.folder, pattern: "x", globs: ["a", "{b"] }))).toMatchObject({
      reason: ErrorReason.INVALID_INPUT,
      metadata: { field: "globs[1]" },
    });
  });
});

describe("the limits of a search", () => {
  it("are the matches that are asked for", async () => {
    tree({ a: "x\n".repeat(300), b: "x\n" });
    const answer = await search({ path: test.folder, pattern: "x" });
    expect([answer.matches?.length, answer.stoppedBy]).toEqual([200, SearchLimit.MATCHES]);
    const all = await search({ path: test.folder, pattern: "x", maxMatches: 301 });
    expect([all.matches?.length, all.stoppedBy]).toEqual([301, SearchLimit.UNSPECIFIED]);
  });

  it("are the text that an output holds", async () => {
    tree({ a: `${"x".repeat(500)}\n`.repeat(2000) });
    const answer = await search({ path: test.folder, pattern: "x", maxMatches: 2000, contextLines: 10 });
    expect(answer.stoppedBy).toBe(SearchLimit.MATCHES);
    expect(JSON.stringify(answer.matches?.map(({ text, before, after }) => [text, before, after])).length).toBeLessThan(
      1024 * 1024,
    );
  });

  it("are the time of the call", async () => {
    tree({ a: `${"x".repeat(200)}\n`.repeat(50_000) });
    context = { ...context, timeoutMs: 20 };
    const answer = await search({ path: test.folder, pattern: "x*y" });
    expect(answer.stoppedBy).toBe(SearchLimit.TIME);
  });

  it("are the size of the expression, and that it is one", async () => {
    tree({ a: "x" });
    for (const pattern of ["(", "(?=x)", "\\pL{900}\\pL{900}\\pL{900}", "a{2000}"])
      expect(await faultOf(search({ path: test.folder, pattern }))).toMatchObject({
        reason: ErrorReason.INVALID_INPUT,
        metadata: { field: "pattern" },
      });
  });

  it("hold for a pattern that makes others backtrack, and let other work go on", async () => {
    tree({ a: `${"a".repeat(5000)}!\n`.repeat(2000) });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const answer = await search({ path: test.folder, pattern: "(a+)+$" });
    clearInterval(timer);
    expect(answer.matches).toEqual([]);
    expect(turns).toBeGreaterThan(0);
  });

  it("end when the call is canceled", async () => {
    tree({ a: "x\n".repeat(100_000) });
    context = { ...context, signal: AbortSignal.abort() };
    expect(await faultOf(search({ path: test.folder, pattern: "y" }))).toMatchObject({ reason: ErrorReason.CANCELED });
  });
});
