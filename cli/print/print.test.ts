import { describe, expect, it } from "vitest";
import { safeFor, visible, visibleLine } from "./escape.ts";
import { jsonDocument, jsonLine } from "./json.ts";
import { readAll } from "./pages.ts";
import { readable } from "./readable.ts";
import { plain, styleFor } from "./style.ts";
import { table } from "./table.ts";
import { durationText } from "./time.ts";

const output = (isTTY: boolean) => ({ isTTY, write: () => undefined });

describe("text from elsewhere", () => {
  it.each([
    ["plain", "text\twith\nlines", "text\twith\nlines"],
    ["colors", "\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"],
    ["a C1 control sequence", "\x9b31m", "\\x9b31m"],
    ["a carriage return", "a\rb", "a\\x0db"],
    ["bidi", "a\u202eb", "a\\u202eb"],
    ["zero width", "a\u200bb", "a\\u200bb"],
    ["tags", "a\u{e0041}", "a\\u{e0041}"],
    ["a line separator", "a\u2028b", "a\\u2028b"],
    ["half a pair", "a\ud800b", "a\\ud800b"],
    ["letters of any script", "żółć 日本語 ❤\ufe0f 😀", "żółć 日本語 ❤\ufe0f 😀"],
  ])("%s is made visible", (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it("is put on one line", () => {
    expect(visibleLine("a\nb\tc")).toBe("a\\nb\\tc");
  });

  it("goes to a file as it is, and to a terminal made safe", () => {
    expect(safeFor(output(false), "\x1b[1m")).toBe("\x1b[1m");
    expect(safeFor(output(true), "\x1b[1m")).toBe("\\x1b[1m");
  });
});

describe("JSON", () => {
  it.each(["\x1b[31m", "\x9b31m", "\u202e", "\u{e0041}", "żółć 😀"])(
    "of %j is the same value, without what a terminal acts on",
    (text) => {
      for (const json of [jsonDocument({ text }), jsonLine({ text })]) {
        expect(JSON.parse(json)).toEqual({ text });
        expect(visible(json)).toBe(json);
      }
    },
  );
});

describe("a table", () => {
  it("is aligned, wide characters too", () => {
    const text = table(
      ["NAME", "SIZE"],
      [
        ["a", "1"],
        ["日本", "22"],
        ["long name", ""],
      ],
    );
    expect(text).toBe("NAME       SIZE\na          1\n日本       22\nlong name\n");
  });

  it("keeps every cell on its line and harmless", () => {
    expect(table(["A", "B"], [["x\ny", "\x1b[1m"]])).toBe("A     B\nx\\ny  \\x1b[1m\n");
  });

  it("without rows is nothing", () => {
    expect(table(["A"], [])).toBe("");
  });

  it("is aligned the same with colors", () => {
    const style = styleFor({ env: {} }, output(true));
    const text = table(["A", "B"], [["one", "x"]], { style, paint: (cell) => style.red(cell) });
    expect(text).toBe("\x1b[1mA\x1b[22m    \x1b[1mB\x1b[22m\n\x1b[31mone\x1b[39m  \x1b[31mx\x1b[39m\n");
  });
});

describe("colors", () => {
  it.each([
    ["a terminal", {}, true, true],
    ["a pipe", {}, false, false],
    ["NO_COLOR", { NO_COLOR: "1" }, true, false],
    ["an empty NO_COLOR", { NO_COLOR: "" }, true, true],
    ["a dumb terminal", { TERM: "dumb" }, true, false],
  ])("on %s", (_, env, isTTY, colored) => {
    expect(styleFor({ env }, output(isTTY)) !== plain).toBe(colored);
  });
});

describe("a readable object", () => {
  it.each([
    [{ a: 1, b: "x", c: true, d: null }, "a: 1\nb: x\nc: true\nd: null\n"],
    [{ text: "one\ntwo\n" }, "text:\n  one\n  two\n"],
    [{ list: ["a", "b"] }, "list:\n  - a\n  - b\n"],
    [{ empty: [], none: {} }, "empty: (none)\nnone: (none)\n"],
    [
      {
        rows: [
          { a: 1, b: "x" },
          { a: 22, c: "y" },
        ],
      },
      "rows:\n  a   b  c\n  1   x\n  22     y\n",
    ],
    [{ deep: { list: [{ a: [1] }] } }, "deep:\n  list:\n    - a:\n        - 1\n"],
    [{ "k\x1b": "v\x1b[2J" }, "k\\x1b: v\\x1b[2J\n"],
    [{}, ""],
  ])("%j", (value, text) => {
    expect(readable(value)).toBe(text);
  });
});

describe("pages", () => {
  const pages = new Map([
    ["", { items: [1, 2], nextPageToken: "b" }],
    ["b", { items: [3], nextPageToken: "" }],
    ["loop", { items: [4], nextPageToken: "loop" }],
  ]);
  const read = (start: string) => (token: string) =>
    Promise.resolve(pages.get(token === "" ? start : token) ?? { items: [], nextPageToken: "" });

  it("are followed to the last one, and to the limit", async () => {
    expect(await readAll(read(""))).toEqual([1, 2, 3]);
    expect(await readAll(read(""), 1)).toEqual([1]);
  });

  it("that lead to themselves end", async () => {
    expect(await readAll(read("loop"))).toEqual([4, 4]);
  });
});

it.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [2500, "2.5 s"],
  [60_000, "1 min"],
  [7_200_000, "2 h"],
  [30 * 86_400_000, "30 days"],
])("%d milliseconds are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
