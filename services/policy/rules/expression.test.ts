import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { factsOf } from "../facts/facts.ts";
import { completeExample } from "./example.ts";
import { compileExpression, type Verdict } from "./expression.ts";

const ARGS: JsonObject = {
  depth: 3,
  ratio: 0.5,
  path: "/var/log",
  argv: ["df", "-h"],
  nested: { a: [1, { b: true }] },
  none: null,
};

const EXAMPLE = {
  principal: { id: "agent-1", roles: ["agent"] },
  device: { id: "dev-1", name: "laptop", labels: { role: "web" } },
  tool: "fs.list",
  ingress: "cli",
  time: "2026-11-01T12:30:00Z",
};

function verdict(text: string, changes: { args?: JsonObject; labels?: Record<string, string> } = {}): Verdict {
  const result = compileExpression(text);
  if (!result.ok) throw new Error(`refused: ${result.message}`);
  const example = completeExample(EXAMPLE, toolByName);
  if (!example.ok) throw new Error(example.message);
  const { request } = example;
  if (changes.labels && request.device) request.device.labels = changes.labels;
  return result.expression(factsOf(request, changes.args ?? ARGS, { verdict: "none", reasons: [] }));
}

function refusal(text: string): { message: string; line: number } {
  const result = compileExpression(text);
  if (result.ok) throw new Error("not refused");
  return result;
}

describe("an expression", () => {
  it.each([
    "args.depth > 2",
    "args.depth == 3",
    "args.depth + 1 == 4",
    "args.ratio < 1.0",
    "args.depth > 2.5",
    'args.argv[0] == "df" && args.argv.size() == 2',
    'args.argv.exists(a, a.startsWith("-"))',
    'args.argv[0] in ["df", "du"]',
    'has(args.path) && args.path.startsWith("/var/")',
    'args.path.matches("^/var/[a-z]+$")',
    "args.nested.a[1].b == true",
    "args.none == null",
    '"agent" in principal.roles',
    'device.labels.role == "web" && device.mode == "user"',
    "tool.read_only && !tool.destructive",
    'ingress == "cli"',
    'time > timestamp("2026-01-01T00:00:00Z") && time.getHours() == 12',
    "true",
  ])("matches: %s", (text) => {
    expect(verdict(text)).toEqual({ kind: "match" });
  });

  it.each(["args.depth > 3", "false", "!has(args.path)", 'args.path.matches("^log")'])("does not match: %s", (text) => {
    expect(verdict(text)).toEqual({ kind: "no_match" });
  });

  it.each([
    ["args.missing == 1", /missing/],
    ["args.argv[7] == 'x'", /index/],
    ["device.labels.nope == 'x'", /nope/],
    ["args.depth.startsWith('a')", /overload/],
    ["args.path > 1", /overload/],
    ["1 / (args.depth - 3) == 0", /zero/],
  ])("fails, which is no match: %s", (text, message) => {
    expect(verdict(text)).toMatchObject({ kind: "error", message: expect.stringMatching(message) });
  });

  it.each([
    ["principal.nope == 'x'", /nope/],
    ["nope == 1", /Unknown variable/],
    ["principal.id == 1", /overload/],
    ["tool.read_only == 'yes'", /overload/],
    ["principal.id", /must be bool, not string/],
    ["args.depth", /must be bool, not dyn/],
    ["args.argv.slice(1) == []", /overload/],
    ["1 +", /token|Unexpected|expected/i],
    ["", /.+/],
    ["args.path.matches('(')", /missing/],
    ["args.path.matches(args.pattern)", /written out/],
    ["args.path.matches('a(?=b)')", /invalid|perl/i],
  ])("is refused when it is loaded: %s", (text, message) => {
    expect(refusal(text).message).toMatch(message);
  });

  it("is refused with the line that is wrong", () => {
    expect(refusal('"agent" in principal.roles\n&& args.depth > 1\n&& principal.nope == "x"').line).toBe(2);
  });

  it("is refused where it is too large", () => {
    expect(refusal(`${"(".repeat(200)}true${")".repeat(200)}`).message).toMatch(/maxDepth/);
    expect(refusal(Array.from({ length: 2000 }, () => "true").join(" && ")).message).toMatch(/maxAstNodes/);
  });
});

describe("hostile arguments", () => {
  const hostile = JSON.parse(
    '{"__proto__":{"admin":true},"constructor":"x","toString":"y","hasOwnProperty":"z","list":[],"text":"t"}',
  ) as JsonObject;

  it.each([
    ["args.admin == true", "error"],
    ['args["admin"] == true', "error"],
    ["args.text.constructor == 'x'", "error"],
    ["args.list.constructor == 'x'", "error"],
    ["args.list.length == 0", "error"],
    ["args.list.__proto__ == null", "error"],
    ["args.text.__proto__ == null", "error"],
    ["has(args.valueOf)", "no_match"],
    ["has(args.isPrototypeOf)", "no_match"],
    // What the caller sent under such a name is data like any other.
    ["args.constructor == 'x'", "match"],
    ["args.__proto__.admin == true", "match"],
    ["principal[args.constructor] == 'x'", "error"],
  ])("reach no prototype: %s is %s", (text, kind) => {
    expect(verdict(text, { args: hostile }).kind).toBe(kind);
    expect(Object.prototype).not.toHaveProperty("admin");
  });

  it.each([
    "principal.constructor == 'x'",
    "tool.__proto__ == 'x'",
    "device.toString == 'x'",
    "principal['constructor'] == 1",
  ])("and no expression does either: %s", (text) => {
    expect(refusal(text).message).not.toBe("");
  });

  it("cannot make a label look like something else", () => {
    const labels = JSON.parse('{"constructor":"Map","__proto__":"x"}') as Record<string, string>;
    expect(verdict('device.labels["constructor"] == "Map"', { labels }).kind).toBe("match");
    expect(verdict("has(device.labels.role)", { labels }).kind).toBe("no_match");
  });

  it("cannot make a pattern take more than linear time", () => {
    const args = { path: `${"a".repeat(50_000)}!` };
    expect(verdict('args.path.matches("^(a+)+$")', { args }).kind).toBe("no_match");
  });
});
