import { describe, expect, it } from "vitest";
import { toolByName } from "../../../lib/toolschema/catalogue-file.ts";
import { type CardFacts, renderCard } from "./card.ts";
import { keptArguments } from "./cut.ts";
import { redactSecretFields } from "./redact.ts";
import { visible } from "./visible.ts";

const ARGS = { argv: ["rm", "-r", "my dir"], env: { TZ: "UTC" }, timeoutMs: 1000 };

const FACTS: CardFacts = {
  deviceName: "laptop",
  deviceId: "dev-1",
  devices: [],
  tool: "exec",
  capability: "shell.exec",
  principalId: "agent-1",
  roles: ["agent"],
  source: "llm",
  purpose: "",
  message: "This may change something.",
  ruleIds: ["exec/agent-other"],
  args: ARGS,
  argsDigest: "d".repeat(64),
  timeoutMs: 60_000,
};

describe("a card", () => {
  it("says device, tool, who asks, why it is held, and every argument", () => {
    expect(renderCard(FACTS)).toBe(`Device:    laptop (dev-1)
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
Digest:    SHA-256 of all arguments ${"d".repeat(64)}
`);
  });

  it("shows a line break in a value as such, and no value can look like a line of the card", () => {
    const card = renderCard({ ...FACTS, args: { command: "ls\nTool:      device.ping (device.ping)" } });
    expect(card).toContain('  command: "ls\\u{a}\n      Tool:      device.ping');
    expect(card.split("\n").filter((line) => line.startsWith("Tool:"))).toHaveLength(1);
  });

  it("shows hostile names of devices, people, keys and purposes without their effect", () => {
    const card = renderCard({
      ...FACTS,
      deviceName: "lap\u202etop",
      principalId: "me\nTool: x",
      purpose: "for\u200byou",
      args: { "a\u001b[2J": 1 },
    });
    expect(card).toContain("lap\\u{202e}top");
    expect(card).toContain("me\\u{a}Tool: x");
    expect(card).toContain("for\\u{200b}you");
    expect(card).toContain('["a\\u{1b}[2J"]: 1');
  });

  it("shows every device of a fan-out, however many and however they are called", () => {
    const devices = Array.from({ length: 1000 }, (_, at) => ({ name: `web\n${"x".repeat(60)}${at}`, id: `dev-${at}` }));
    const card = renderCard({ ...FACTS, devices, args: { text: "y".repeat(100_000) } });
    expect(card).toContain("Devices:   a fan-out to 1000 devices");
    const listed = card.split("\n").filter((line) => /^ {2}web\\u\{a\}x+\d+ \(dev-\d+\)$/.test(line));
    expect(listed).toHaveLength(1000);
    expect(card).not.toContain("Device:  ");
  });

  it("shows the longest shell text whole, and cuts longer values with length and digest", () => {
    const whole = "x".repeat(8192);
    expect(renderCard({ ...FACTS, args: { command: whole } })).toContain(`"${whole}"`);
    const card = renderCard({ ...FACTS, args: { text: "y".repeat(9000) } });
    expect(card).toMatch(/y" \[cut: the first 8192 characters of 9000 bytes; SHA-256 of all [0-9a-f]{64}\]/);
  });

  it("stays short, and says so, whatever is asked", () => {
    const many = renderCard({ ...FACTS, args: { argv: Array.from({ length: 256 }, () => "z".repeat(8000)) } });
    expect(many.length).toBeLessThan(70_000);
    expect(many).toContain("[cut: the first 200 characters");
    const endless = renderCard({ ...FACTS, args: { list: Array.from({ length: 50_000 }, (_, i) => i) } });
    expect(endless.length).toBeLessThan(70_000);
    expect(endless).toContain("do not approve what you cannot see");
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
    expect(visible(text)).toBe(shown);
  });

  it("never shows two texts alike", () => {
    expect(visible("\\u{202e}")).not.toBe(visible("\u202e"));
    expect(visible("\\u{5c}u{a}")).not.toBe(visible("\\u{a}"));
  });
});

describe("arguments that are kept", () => {
  it("hide every field that the schema marks as secret", () => {
    const schema = {
      properties: {
        token: { type: "string", writeOnly: true },
        headers: { additionalProperties: { $ref: "#/$defs/header" } },
        list: { items: { properties: { key: { writeOnly: true } } } },
      },
      $defs: { header: { properties: { value: { writeOnly: true }, name: {} } } },
    };
    const args = { token: "t", headers: { a: { name: "n", value: "v" } }, list: [{ key: "k", other: 1 }], free: "f" };
    expect(redactSecretFields(args, schema)).toEqual({
      token: "[redacted]",
      headers: { a: { name: "n", value: "[redacted]" } },
      list: [{ key: "[redacted]", other: 1 }],
      free: "f",
    });
  });

  it("are the arguments themselves for a tool without secrets", () => {
    expect(redactSecretFields(ARGS, toolByName("exec")?.inputSchema ?? {})).toEqual(ARGS);
  });

  it("are short enough for a list", () => {
    expect(keptArguments(ARGS)).toEqual(ARGS);
    const long = keptArguments({ text: "x".repeat(100_000) });
    expect(JSON.stringify(long).length).toBeLessThan(5000);
    const endless = keptArguments({ list: Array.from({ length: 50_000 }, (_, i) => i) });
    expect(endless.note).toMatch(/^\[cut: the first 0 characters of \d+ bytes; SHA-256 of all [0-9a-f]{64}\]$/);
  });
});
