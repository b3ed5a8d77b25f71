import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { DEFAULT_POLICY_FILE } from "./default-policy.ts";
import { checkPolicyFile, loadPolicy } from "./load-policy.ts";
import { problemText } from "./problem.ts";

function problems(text: string): string[] {
  const result = checkPolicyFile(text);
  return result.ok ? [] : result.problems.map(problemText);
}

const rule = (fields: string) => `version: 1\nrules:\n  - { id: a, effect: allow, message: m, ${fields} }\n`;

describe("a policy file", () => {
  it("is loaded with its rules, defaults and version", () => {
    const result = loadPolicy(rule("tools: [fs.read]"), toolByName);
    if (!result.ok) throw new Error("refused");
    const { policy } = result;
    expect(policy).toMatchObject({ approvalTtlMs: 600_000, fourEyes: false, grantTtlMs: 60_000 });
    expect(policy.approvalValidMs).toBe(86_400_000);
    expect(policy.version).toMatch(/^[0-9a-f]{16}$/);
    expect(policy.rulesFor("fs.read")).toHaveLength(1);
    expect(policy.rulesFor("fs.write")).toHaveLength(0);
  });

  it.each([
    ["fs.*", "fs.read", true],
    ["fs.*", "fsx", false],
    ["*", "anything:at-all", true],
    ["weather:now", "weather:now", true],
    ["weather:*", "weather:later", true],
  ])("lets the pattern %s take the tool %s: %s", (pattern, tool, expected) => {
    const result = loadPolicy(rule(`tools: ["${pattern}"]`), toolByName);
    expect(result.ok && result.policy.rulesFor(tool).length === 1).toBe(expected);
  });

  it.each([
    ["version: 2\nrules: []", "version must be 1"],
    ["rules: []", "version must be 1"],
    ["version: 1\nrules: []", "rules must hold at least one rule"],
    ["version: 1\nrulez: []", 'line 2: a policy file: unknown key "rulez"'],
    ["version: 1\nversion: 1", "unique"],
    ["[]", "must be a mapping"],
    ["", "version must be 1"],
    [": : :", "line 1"],
    ["version: 1\napprovals: { ttl: 10 }", "approvals.ttl must be a text"],
    ["version: 1\napprovals: { ttl: 10y }", 'approvals.ttl must be a duration such as "60s"'],
    ["version: 1\napprovals: { valid: 31d }", "approvals.valid must be a duration"],
    ["version: 1\ngrants: { ttl: 6m }", "at most 300s"],
    ["version: 1\nrules: &r\n  - { id: a }", "anchors are not supported"],
    ["version: 1\nrules: !!js/function 'x'", "line 2"],
    [rule("whem: x"), 'rule "a": a rule: unknown key "whem"'],
    [rule("obligations: { max_run: 2h }"), "max_run must be a duration"],
    [rule("obligations: { max_run: 0s }"), "max_run must be a duration"],
    [rule("obligations: { sandbox: full }"), "sandbox must be one of none, workspace, read_only"],
    [rule("obligations: { sandbx: read_only }"), 'obligations: unknown key "sandbx"'],
    [rule("obligations: 60s"), "obligations must be a mapping"],
    [
      "version: 1\nrules:\n  - { id: a, effect: hold, obligations: { max_run: 1s }, message: m }",
      "obligations belong to a rule that allows",
    ],
    [rule("tools: [fs.raed]"), 'no built-in tool is named "fs.raed"; did you mean "fs.read"?'],
    [rule("tools: [weather]"), 'line 3, rule "a": no built-in tool is named "weather"'],
    [
      rule(`when: '"shell.exce" in tool.capabilities'`),
      'line 3, rule "a": when: no built-in capability is named "shell.exce"; did you mean "shell.exec"?',
    ],
    [rule(`when: 'tool.capabilities.all(c, c in ["fs.read", "fs.lsit"])'`), '"fs.lsit"; did you mean "fs.list"?'],
    [rule(`when: 'tool.capabilities.exists(c, c != "fs.raed")'`), '"fs.raed"; did you mean "fs.read"?'],
    [rule(`when: 'tool.capabilities == ["fs.raed"]'`), '"fs.raed"; did you mean "fs.read"?'],
    [rule(`when: 'tool.capabilities[0] == "fs.raed"'`), '"fs.raed"; did you mean "fs.read"?'],
    [rule(`when: 'cel.bind(c, tool.capabilities, "fs.raed" in c)'`), '"fs.raed"; did you mean "fs.read"?'],
    [rule(`when: 'tool.capabilities.filter(c, c == "fs.raed") != []'`), '"fs.raed"; did you mean "fs.read"?'],
    [rule(`when: '"everything" in tool.capabilities'`), 'no built-in capability is named "everything"'],
    [rule(`when: 'tool.capability == "fs.read"'`), "No such key: capability"],
    [rule("tools: fs.read"), "tools must be a list"],
    [rule("tools: ['*.read']"), '"*.read" is no tool\'s name'],
    [rule("when: principal.nope"), 'line 3, rule "a": when: No such key: nope'],
    [rule("when: args.depth"), "the result must be bool, not dyn"],
    ["version: 1\nrules:\n  - { id: a, effect: permit, message: m }", "effect must be one of block, deny, hold, allow"],
    ["version: 1\nrules:\n  - { id: A, effect: deny, message: m }", "id must match"],
    ["version: 1\nrules:\n  - { id: mode/x, effect: deny, message: m }", "kept for Reeve"],
    ["version: 1\nrules:\n  - { id: a, effect: deny }", "message must say why"],
    [`${rule("when: true")}  - { id: a, effect: deny, message: m }`, "the id is used twice"],
  ])("is refused: %j", (text, expected) => {
    expect(problems(text).join("\n")).toContain(expected);
  });

  it.each([
    [
      "match: [{ tool: fs.read }], when: 'false'",
      'line 3, rule "a": the example should be a match, but it is a no_match',
    ],
    ["no_match: [{ tool: fs.read }]", "the example should be a no_match, but it is a match"],
    ["no_match: [{ tool: fs.read }], when: args.x == 1", "it fails: No such key: x"],
    ["match: [{ args: {} }]", "an example must name its tool"],
    ["match: [{ tool: nope }]", 'no built-in tool is named "nope"'],
    ["match: [{ tool: fs.read, args: { pathh: x } }]", 'fs.read has no argument "pathh"'],
    ["match: [{ tool: fs.read, principal: { roles: [root] } }]", "principal.roles must be one of operator, agent"],
    ["match: [{ tool: fs.read, ingress: mail }]", "ingress must be one of"],
    ["match: [{ tool: fs.read, why: x }]", 'an example: unknown key "why"'],
    ["match: [{ tool: fs.read, time: soon }]", "time must be a time"],
  ])("is refused for an example: %s", (fields, expected) => {
    expect(problems(rule(fields)).join("\n")).toContain(expected);
  });

  it("is refused with all problems at once, each with its rule and line", () => {
    const text = `version: 1
rules:
  - id: first
    effect: allow
    message: m
    when: |
      true
      && principal.nope == "x"
  - id: second
    effect: hold
    message: m
    match:
      - { tool: fs.read }
      - { tool: nope }
`;
    expect(problems(text)).toEqual([
      'line 8, rule "first": when: No such key: nope',
      'line 14, rule "second": match: no built-in tool is named "nope"',
    ]);
  });

  it.each([
    '"fs.read" in tool.capabilities && "weather:now" in tool.capabilities',
    'tool.capabilities.exists(c, c.startsWith("fs.")) && args.argv.exists(c, c == "rm")',
    'tool.capabilities.exists(c, args.argv.exists(c, c == "rm"))',
    'tool.name == "nothing" && "agent" in principal.roles && args.capabilities == "none"',
  ])("may name declared capabilities, announced ones, and other texts elsewhere: %s", (text) => {
    expect(problems(rule(`when: '${text}'`))).toEqual([]);
  });

  it("lets a rule ask for all capabilities of a tool that needs several", () => {
    const needs = (...capabilities: string[]) =>
      `{ tool: { name: "x:y", capabilities: [${capabilities.join(", ")}] } }`;
    const examples = `match: [${needs("fs.read")}], no_match: [${needs("fs.read", "shell.exec")}]`;
    expect(problems(rule(`when: 'tool.capabilities.all(c, c == "fs.read")', ${examples}`))).toEqual([]);
    expect(problems(rule(`when: '"fs.read" in tool.capabilities', ${examples}`))).toEqual([
      'line 3, rule "a": the example should be a no_match, but it is a match',
    ]);
  });

  it("states facts of a tool that is announced by a plugin in the example itself", () => {
    const example = '{ tool: { name: "weather:now", read_only: true }, args: { city: Bern } }';
    expect(problems(rule(`when: 'tool.read_only && args.city == "Bern"', match: [${example}]`))).toEqual([]);
  });
});

describe("the shipped policy", () => {
  it("loads, and every rule has a message and examples of both kinds", async () => {
    const result = loadPolicy(await readFile(DEFAULT_POLICY_FILE, "utf8"), toolByName);
    if (!result.ok) throw new Error(result.problems.map(problemText).join("\n"));
    expect(result.policy.rules.length).toBeGreaterThan(10);
    expect(result.policy.examples).toBeGreaterThan(80);
  });
});
