import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { factsOf } from "../facts/facts.ts";
import { completeExample } from "./example.ts";
import { compileExpression, type Verdict } from "./expression.ts";

function verdict(text: string, args: JsonObject): Verdict {
  const compiled = compileExpression(text);
  if (!compiled.ok) throw new Error(`refused: ${compiled.message}`);
  const example = completeExample({ tool: { name: "x:y" } }, () => undefined);
  if (!example.ok) throw new Error(example.message);
  return compiled.expression(factsOf(example.request, args, { verdict: "none", reasons: [] }));
}

function list(length: number): string[] {
  return Array.from({ length }, (_, at) => `element-${at}`);
}

const LONG = list(100_000);
const TEXT = "x".repeat(500_000);

describe("what would cost more than the limit is given up", () => {
  it.each<[string, JsonObject]>([
    ["args.a.exists(x, args.a.exists(y, x + y == ''))", { a: LONG }],
    ["!args.a.all(x, args.a.exists(y, y == x))", { a: LONG }],
    ["args.a.map(x, args.a.filter(y, y == x)).size() == 0", { a: LONG }],
    ["args.a.exists(x, args.a.exists(y, args.a.exists(z, z == x + y)))", { a: list(200) }],
    ["args.a.exists_one(x, x in args.b)", { a: LONG, b: LONG }],
    ["args.a.exists(x, args.t.contains(x))", { a: LONG, t: TEXT }],
    ["args.a.exists(x, args.t.matches('(y|z)+$'))", { a: list(100), t: TEXT }],
    ["args.a.exists(x, size(args.t) == 0)", { a: LONG, t: TEXT }],
    ["args.a.exists(x, args.t.split('').size() == 0)", { a: LONG, t: TEXT }],
    ["args.a.exists(x, args.a + args.a == [])", { a: LONG }],
    ["cel.bind(b, args.a, b.exists(x, b.exists(y, x + y == '')))", { a: LONG }],
    [
      `${Array.from({ length: 20 }, (_, at) => `cel.bind(v${at}, ${at === 0 ? "args.t" : `v${at - 1} + v${at - 1}`}, `).join("")}v19 == ''${")".repeat(20)}`,
      { t: TEXT },
    ],
    // Each element that fails is passed over, and the last one matches.
    ["args.a.exists(x, x == 'element-99999' || args.a.exists(y, y == ''))", { a: LONG }],
  ])("%s", (text, args) => {
    expect(verdict(text, args)).toEqual({ kind: "over_limit" });
  });
});

describe("what a rule ordinarily asks stays far below the limit", () => {
  it.each<[string, JsonObject]>([
    ["args.argv.all(a, a.startsWith('e')) && !args.argv.exists(a, a.contains('*'))", { argv: list(256) }],
    ["args.a.exists(x, args.b.exists(y, x == y))", { a: list(256), b: list(256) }],
    ["args.a.exists(x, x in args.b)", { a: list(256), b: list(256) }],
    ["args.a.exists(x, x == 'element-99999')", { a: LONG }],
    ["args.t.contains('xx') && args.t.matches('^x+$') && size(args.t) == 500000", { t: TEXT }],
    ["args.m.exists(k, args.m[k] == 1)", { m: { a: 0, b: 1 } }],
    ["'agent' in principal.roles && principal.roles.exists(r, r == 'agent')", {}],
    ["has(args.argv) && args.argv[0] + '!' == 'element-0!'", { argv: list(3) }],
  ])("%s", (text, args) => {
    expect(verdict(text, args)).toEqual({ kind: "match" });
  });
});

it("one evaluation takes nothing from the next", () => {
  const costly = "args.a.exists(x, args.a.exists(y, x + y == ''))";
  expect(verdict(costly, { a: LONG })).toEqual({ kind: "over_limit" });
  expect(verdict(costly, { a: list(10) })).toEqual({ kind: "no_match" });
});
