import { describe, expect, it } from "vitest";
import { sha256Hex } from "../sign/canonical.ts";
import { changedFacts, MAX_PREVIEW_BYTES, type PreviewFact, previewOutput, readPreview } from "./preview.ts";

const bytesOf = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));

describe("a device's preview", () => {
  it("is read as it was written", () => {
    const facts: PreviewFact[] = [
      { name: "command", value: "sleep 1" },
      { name: "change", value: "-a\n+b", isContent: true },
    ];
    expect(readPreview(bytesOf(previewOutput(facts)))).toEqual(facts);
  });

  it("has the digest of a long value in its middle, so that a change there is another preview", () => {
    const long = "x".repeat(100_000);
    const other = `${long.slice(0, 50_000)}y${long.slice(50_001)}`;
    const [first, second] = [long, other].map((value) => JSON.stringify(previewOutput([{ name: "change", value }])));
    expect(first).toContain(sha256Hex(long));
    expect(first).not.toBe(second);
    expect(readPreview(bytesOf(first ?? ""))).toHaveLength(1);
  });

  it.each(["\u0001", "\u{1f600}", "\ud800", "e"])("fits whatever it holds: %j", (character) => {
    const facts = Array.from({ length: 32 }, (_, at) => ({ name: `fact ${at}`, value: character.repeat(9000) }));
    const bytes = bytesOf(previewOutput(facts));
    expect(bytes.length).toBeLessThanOrEqual(MAX_PREVIEW_BYTES);
    expect(readPreview(bytes)).toHaveLength(32);
  });
});

describe("what is no preview", () => {
  it.each([
    ["nothing", ""],
    ["no JSON", "{"],
    ["no object", []],
    ["no facts", { facts: [] }],
    ["more than facts", { facts: [{ name: "a", value: "b" }], more: 1 }],
    ["a fact without a value", { facts: [{ name: "a" }] }],
    ["a fact without a name", { facts: [{ name: "", value: "b" }] }],
    [
      "a name twice",
      {
        facts: [
          { name: "a", value: "b" },
          { name: "a", value: "c" },
        ],
      },
    ],
    ["a field of its own", { facts: [{ name: "a", value: "b", color: "red" }] }],
    ["a long name", { facts: [{ name: "a".repeat(65), value: "b" }] }],
    ["a long value", { facts: [{ name: "a", value: "b".repeat(5000) }] }],
    ["many facts", { facts: Array.from({ length: 33 }, (_, at) => ({ name: String(at), value: "" })) }],
    ["too many bytes", { facts: [{ name: "a", value: " ".repeat(MAX_PREVIEW_BYTES) }] }],
  ])("is not read: %s", (_, value) => expect(readPreview(bytesOf(value))).toBeUndefined());
});

describe("what changed", () => {
  it("is named, with what is gone and what is new", () => {
    const fact = (name: string, value: string) => ({ name, value });
    const before = [fact("a", "1"), fact("b", "1"), fact("gone", "1")];
    const after = [fact("a", "1"), fact("b", "2"), fact("new", "1")];
    expect(changedFacts(before, after)).toEqual([
      { name: "b", before: fact("b", "1"), after: fact("b", "2") },
      { name: "gone", before: fact("gone", "1"), after: undefined },
      { name: "new", before: undefined, after: fact("new", "1") },
    ]);
  });
});
