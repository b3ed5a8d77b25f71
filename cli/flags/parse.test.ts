import { describe, expect, it } from "vitest";
import { UsageError } from "../errors/usage-error.ts";
import { deriveFlags } from "./derive.ts";
import { parseFlags } from "./parse.ts";

const flags = deriveFlags({
  type: "object",
  properties: {
    argv: { type: "array", items: { type: "string" } },
    maxBytes: { type: "integer" },
    offset: { type: ["integer", "string"] },
    ratio: { type: "number" },
    all: { type: "boolean" },
    env: { type: "object", additionalProperties: { type: "string" } },
    mode: { type: "string", enum: ["WRITE_MODE_REPLACE", "WRITE_MODE_CREATE"] },
    data: { type: "string", contentEncoding: "base64" },
    text: { type: "string" },
    filter: { type: "object", properties: {} },
  },
});

const files: Record<string, string> = { "photo.png": "\u0089PNG" };

function parse(...argv: string[]) {
  return parseFlags(argv, flags, (path) => {
    const text = files[path];
    if (text === undefined) throw new Error("ENOENT: no such file");
    return Buffer.from(text, "latin1");
  });
}

describe("flags become an input", () => {
  it.each([
    [[], {}],
    [["--argv", "uname", "--argv=-a"], { argv: ["uname", "-a"] }],
    [["--argv="], { argv: [""] }],
    [["--argv=a=b"], { argv: ["a=b"] }],
    [["--", "uname", "-a", "--", "--all"], { argv: ["uname", "-a", "--", "--all"] }],
    [["--argv", "sh", "--", "-c", "true"], { argv: ["sh", "-c", "true"] }],
    [["--max-bytes", "10", "--offset", "9007199254740993"], { maxBytes: 10, offset: "9007199254740993" }],
    [["--offset", "12", "--max-bytes", "-5"], { offset: 12, maxBytes: -5 }],
    [["--ratio", "1.5e3"], { ratio: 1500 }],
    [["--all"], { all: true }],
    [["--no-all"], { all: false }],
    [["--all=false"], { all: false }],
    [["--env", "A=1", "--env", "B=x=y", "--env=C="], { env: { A: "1", B: "x=y", C: "" } }],
    [["--mode", "create"], { mode: "WRITE_MODE_CREATE" }],
    [["--mode", "Write_Mode_Replace"], { mode: "WRITE_MODE_REPLACE" }],
    [["--data", "aGk="], { data: "aGk=" }],
    [["--data", "@photo.png"], { data: "iVBORw==" }],
    [["--text", "@photo.png"], { text: "@photo.png" }],
    [["--text", "-"], { text: "-" }],
    [["--filter", '{"a":[1]}'], { filter: { a: [1] } }],
  ])("%j → %j", (argv, input) => {
    expect(parse(...argv)).toEqual(input);
  });

  it.each([
    [["--bogus", "1"], /no flag --bogus/, /--argv --max-bytes/],
    [["--no-text"], /no flag --no-text/, /--text/],
    [["stray"], /"stray" belongs to no flag/, /--argv/],
    [["--text"], /--text needs a value/, /^$/],
    [["--argv", "-a"], /--argv needs a value/, /write --argv=-a/],
    [["--text", "a", "--text", "b"], /--text is given twice/, /^$/],
    [["--all", "--no-all"], /--no-all is given twice/, /^$/],
    [["--no-all=true"], /--no-all takes no value/, /^$/],
    [["--all=maybe"], /--all: "maybe" is neither true nor false/, /^$/],
    [["--max-bytes", "many"], /--max-bytes: "many" is no whole number/, /^$/],
    [["--max-bytes", "9007199254740993"], /--max-bytes: 9007199254740993 is too large/, /^$/],
    [["--ratio", "NaN"], /--ratio: "NaN" is no number/, /^$/],
    [["--ratio", "Infinity"], /--ratio: "Infinity" is no number/, /^$/],
    [["--env", "A"], /--env: write KEY=VALUE, not "A"/, /^$/],
    [["--env", "=1"], /--env: write KEY=VALUE/, /^$/],
    [["--env", "A=1", "--env", "A=2"], /--env: the key "A" is given twice/, /^$/],
    [["--env", "__proto__=1"], /--env: the key "__proto__" is reserved/, /^$/],
    [["--mode", "rename"], /--mode: "rename" is none of: replace, create/, /^$/],
    [["--data", "@gone"], /--data: gone cannot be read: ENOENT/, /^$/],
    [["--filter", '{"a":1,"a":2}'], /--filter: a: .*twice/, /^$/],
    [["--filter", '{"__proto__":1}'], /--filter: __proto__/, /^$/],
    [["--text", "a\ud800"], /--text: not valid UTF-8/, /^$/],
  ])("refuses %j and names the flag", (argv, message, hint) => {
    const refused = refusalOf(() => parse(...argv));
    expect(refused.message).toMatch(message);
    expect(refused.hints.join("\n")).toMatch(hint);
  });

  it("names what is required and missing", () => {
    const required = deriveFlags({
      properties: { a: { type: "string" }, bC: { type: "string" } },
      required: ["a", "bC"],
    });
    expect(() => parseFlags([], required, () => new Uint8Array())).toThrow("--a, --b-c are required");
    expect(() => parseFlags(["--a", "x"], required, () => new Uint8Array())).toThrow("--b-c is required");
  });

  it("takes nothing after -- for a tool without argv", () => {
    const other = deriveFlags({ properties: { path: { type: "string" } } });
    expect(() => parseFlags(["--", "x"], other, () => new Uint8Array())).toThrow('the tool takes nothing after "--"');
  });
});

function refusalOf(act: () => unknown): UsageError {
  try {
    act();
  } catch (error: unknown) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error("not refused");
}
