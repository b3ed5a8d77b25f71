import { describe, expect, it } from "vitest";
import { escapeInvisible } from "./escape-invisible.ts";
import { renderFull, renderSummary, type SummaryFacts } from "./summary.ts";

const ARGS = { argv: ["rm", "-r", "my dir"], env: { TZ: "UTC" }, timeoutMs: 1000 };

const FACTS: SummaryFacts = {
  deviceName: "laptop",
  deviceId: "dev-1",
  devices: [],
  tool: "exec",
  capabilities: ["shell.exec"],
  principalId: "agent-1",
  principalName: "",
  roles: ["agent"],
  ingress: "llm",
  purpose: "",
  message: "This may change something.",
  ruleIds: ["exec/agent-other"],
  args: ARGS,
  analysis: ["Analysis:  ask: it may do anything (command/unknown-program)"],
  preview: [],
  argsDigest: "d".repeat(64),
  timeoutMs: 60_000,
};

describe("a summary", () => {
  it("names device, tool, principal, why it is held, and every argument", () => {
    expect(renderSummary(FACTS)).toEqual({
      isAbridged: false,
      text: `Device:    laptop (dev-1)
Tool:      exec (shell.exec)
Asked by:  agent-1 (agent) by llm
Purpose:   (none given)
Held:      This may change something. (exec/agent-other)
Time:      at most 60000 ms
Arguments:
  argv[0]: "rm"
  argv[1]: "-r"
  argv[2]: "my dir"
  env.TZ: "UTC"
  timeoutMs: 1000
Analysis:  ask: it may do anything (command/unknown-program)
Digest:    SHA-256 of all arguments ${"d".repeat(64)}
`,
    });
    expect(renderFull(FACTS)).toBe(renderSummary(FACTS).text);
  });

  it("names the principal beside its id", () => {
    expect(renderSummary({ ...FACTS, principalName: "night\nagent" }).text).toContain(
      "Asked by:  night\\u{a}agent (agent-1; agent) by llm\n",
    );
  });

  it("says which secrets the tool gets that it does not show", () => {
    const { text } = renderSummary({
      ...FACTS,
      args: { argv: ["cat"], stdin: "[redacted]", env: { KEY: "[redacted]" } },
    });
    expect(text).toContain("Hidden:    secrets that the tool gets and no approver is shown: stdin, env.KEY\n");
  });

  it("shows a line break in a value as such, and no value can look like a line of the summary", () => {
    const { text: summary } = renderSummary({
      ...FACTS,
      args: { command: "ls\nTool:      device.ping (device.ping)" },
    });
    expect(summary).toContain('  command: "ls\\u{a}\n      Tool:      device.ping');
    expect(summary.split("\n").filter((line) => line.startsWith("Tool:"))).toHaveLength(1);
  });

  it("shows hostile names of devices, people, keys and purposes without their effect", () => {
    const { text: summary } = renderSummary({
      ...FACTS,
      deviceName: "lap\u202etop",
      principalId: "me\nTool: x",
      purpose: "for\u200byou",
      args: { "a\u001b[2J": 1 },
    });
    expect(summary).toContain("lap\\u{202e}top");
    expect(summary).toContain("me\\u{a}Tool: x");
    expect(summary).toContain("for\\u{200b}you");
    expect(summary).toContain('["a\\u{1b}[2J"]: 1');
  });

  it("shows every device of a fan-out, however many and however they are called", () => {
    const devices = Array.from({ length: 1000 }, (_, at) => ({ name: `web\n${"x".repeat(60)}${at}`, id: `dev-${at}` }));
    const { text: summary } = renderSummary({ ...FACTS, devices, args: { text: "y".repeat(100_000) } });
    expect(summary).toContain("Devices:   a fan-out to 1000 devices");
    const listed = summary.split("\n").filter((line) => /^ {2}web\\u\{a\}x+\d+ \(dev-\d+\)$/.test(line));
    expect(listed).toHaveLength(1000);
    expect(summary).not.toContain("Device:  ");
  });

  it("shows the longest shell text whole, and of longer values the beginning and the end", () => {
    const whole = "x".repeat(8192);
    expect(renderSummary({ ...FACTS, args: { command: whole } })).toMatchObject({ isAbridged: false });
    expect(renderSummary({ ...FACTS, args: { command: whole } }).text).toContain(`"${whole}"`);
    const facts = { ...FACTS, args: { text: `first ${"y".repeat(9000)} last` } };
    const { text, isAbridged } = renderSummary(facts);
    expect(isAbridged).toBe(true);
    expect(text).toMatch(
      /"first y+" \[cut: 819 of 9011 characters are not shown here; SHA-256 of all [0-9a-f]{64}\] "y+ last"/,
    );
    expect(text).toContain(
      "Abridged:  this summary does not show everything; to approve it, read the full text first\n",
    );
    expect(renderFull(facts)).toContain(facts.args.text);
  });

  it("shows the end of what is padded at the beginning", () => {
    const padded = `${"# a comment\n".repeat(692)}rm -rf ~/work`;
    expect(padded.length).toBeGreaterThan(8300);
    expect(renderSummary({ ...FACTS, args: { argv: ["bash", "-c", padded] } }).text).toContain('rm -rf ~/work"');
  });

  it("stays short, and says so, whatever is asked", () => {
    const args = { argv: Array.from({ length: 256 }, (_, at) => `${at}${"z".repeat(8000)}`) };
    const many = renderSummary({ ...FACTS, args });
    expect(many.isAbridged).toBe(true);
    expect(many.text.length).toBeLessThan(70_000);
    expect(many.text).toContain("  [cut: 156 of 256 arguments are not shown here]\n");
    expect(many.text).toContain('argv[255]: "255z');
    const list = Array.from({ length: 50_000 }, (_, at) => at);
    const endless = renderSummary({ ...FACTS, args: { list } });
    expect(endless.isAbridged).toBe(true);
    expect(endless.text.length).toBeLessThan(70_000);
    expect(endless.text).toContain("  list[49999]: 49999\n");
  });
});

describe("visible", () => {
  it.each([
    ["a\tb", "a\\u{9}b"],
    ["a\u0000b\u007f", "a\\u{0}b\\u{7f}"],
    ["\u200b\u2060\ufeff", "\\u{200b}\\u{2060}\\u{feff}"],
    ["\u202eabc\u2066", "\\u{202e}abc\\u{2066}"],
    ["a\u00a0b\u3000c", "a\\u{a0}b\\u{3000}c"],
    ["tag\u{e0041}", "tag\\u{e0041}"],
    ["vs\ufe0f", "vs\\u{fe0f}"],
    ["\ud800", "\\u{d800}"],
    ["\u2028", "\\u{2028}"],
    ["Grüße 漢字 🙂", "Grüße 漢字 🙂"],
  ])("shows %j as %j", (text, shown) => {
    expect(escapeInvisible(text)).toBe(shown);
  });

  it("never shows two texts alike", () => {
    expect(escapeInvisible("\\u{202e}")).not.toBe(escapeInvisible("\u202e"));
    expect(escapeInvisible("\\u{5c}u{a}")).not.toBe(escapeInvisible("\\u{a}"));
  });
});
