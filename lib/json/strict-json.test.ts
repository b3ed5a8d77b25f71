import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { checkStrictJson, parseStrictJson } from "./strict-json.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const good = [
  "{}",
  "[]",
  '""',
  "0",
  "-0",
  "-12.5e-3",
  "1E400".replace("400", "+30"),
  "true",
  " \r\n\t[ null , false ] ",
  '{"a":{"a":{"a":[]}},"b":[{"a":1},{"a":2}]}',
  '{"":1,"constructor":2,"toString":3,"proto":4}',
  String.raw`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`,
  '{"grüße":"日本語 😀"}',
  "123456789012345678901234567890",
  `[${"[".repeat(30)}${"]".repeat(30)}]`,
];

test.each(good)("accepts %s and parses it as JSON.parse does", (text) => {
  expect(checkStrictJson(bytes(text))).toBeUndefined();
  expect(parseStrictJson(bytes(text))).toEqual(JSON.parse(text));
});

const bad: [string, string, string, string][] = [
  ["nothing", "", "syntax", ""],
  ["only space", "  \n", "syntax", ""],
  ["NaN", "NaN", "syntax", ""],
  ["Infinity", '{"a":-Infinity}', "syntax", "a"],
  ["undefined", '{"a":[1,undefined]}', "syntax", "a[1]"],
  ["a cut word", "[tru]", "syntax", "[0]"],
  ["a leading zero", "[01]", "syntax", "[0]"],
  ["a plus sign", "+1", "syntax", ""],
  ["a bare point", '{"n":1.}', "syntax", "n"],
  ["a lone minus", "-", "syntax", ""],
  ["hexadecimal", "0x10", "trailing_data", ""],
  ["a number beyond a double", '{"n":1e999}', "number_range", "n"],
  ["single quotes", "{'a':1}", "syntax", ""],
  ["a bare key", "{a:1}", "syntax", ""],
  ["a comment", "/* x */1", "syntax", ""],
  ["a trailing comma in an array", "[1,]", "syntax", "[1]"],
  ["a trailing comma in an object", '{"a":1,}', "syntax", "a"],
  ["a missing colon", '{"a" 1}', "syntax", "a"],
  ["a missing comma", '{"a":[1 2]}', "syntax", "a[0]"],
  ["the wrong bracket", '{"a":[1}', "syntax", "a[0]"],
  ["an object that does not end", '{"a":{"b":1}', "syntax", "a"],
  ["a string that does not end", '{"a":"b', "syntax", "a"],
  ["a string that ends in a backslash", '"\\"', "syntax", ""],
  ["a raw newline in a string", '["a\nb"]', "syntax", "[0]"],
  ["a raw null in a string", '["a\u0000"]', "syntax", "[0]"],
  ["an unknown escape", String.raw`["\x41"]`, "syntax", "[0]"],
  ["a short unicode escape", String.raw`["\u12"]`, "syntax", "[0]"],
  ["a closing bracket alone", "]", "syntax", ""],
  ["two documents", "{} {}", "trailing_data", ""],
  ["a closing bracket too many", "[[]]]", "trailing_data", ""],
  ["a key twice", '{"a":{"b":1,"c":2,"b":3}}', "duplicate_key", "a.b"],
  ["a key twice, once escaped", String.raw`{"ab":1,"\u0061b":2}`, "duplicate_key", "ab"],
  ["a key twice in an array's object", '{"l":[{},{"x":1,"x":1}]}', "duplicate_key", "l[1].x"],
  ["__proto__", '{"a":{"__proto__":{"x":1}}}', "reserved_key", "a.__proto__"],
  ["__proto__, escaped", String.raw`{"__pr\u006fto__":1}`, "reserved_key", "__proto__"],
  ["a high surrogate alone", String.raw`{"s":"\ud83d"}`, "surrogate", "s"],
  ["a low surrogate alone", String.raw`{"s":"\ude00\ud83d"}`, "surrogate", "s"],
  ["a surrogate in a key", String.raw`{"\ud800":1}`, "surrogate", ""],
  ["a byte order mark", "\ufeff{}", "bom", ""],
  ["a depth of 33", "[".repeat(33), "max_depth", "[0]".repeat(32)],
  ["a depth of 10 000", '{"a":'.repeat(10_000), "max_depth", `a${".a".repeat(31)}`],
  ["a key that needs quotes in its path", '{"a b":[nil]}', "syntax", '["a b"][0]'],
];

test.each(bad)("refuses %s", (_name, text, rule, field) => {
  expect(checkStrictJson(bytes(text))).toMatchObject({ rule, field });
  expect(() => parseStrictJson(bytes(text))).toThrow();
});

test.each([
  ["a stray continuation byte", [0x22, 0x80, 0x22]],
  ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
  ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ["a cut sequence", [0x22, 0xe2, 0x82, 0x22]],
  ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
])("refuses invalid UTF-8: %s", (_name, raw) => {
  expect(checkStrictJson(Uint8Array.from(raw))).toMatchObject({ rule: "utf8", field: "" });
});

test.each([
  ['{\n"a": 1,\n"a": 2 }', 3],
  ['{ "a": 1,\n\n  b }', 3],
  ['["a\nb"]', 1],
  ["[1,\n2", 2],
  ["", 1],
])("says that %j is wrong on line %i", (text, line) => {
  expect(checkStrictJson(bytes(text))).toMatchObject({ line });
});

test("counts the keys of all objects together", () => {
  const object = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join(",")}}`;
  expect(checkStrictJson(bytes(object(1000)))).toBeUndefined();
  expect(checkStrictJson(bytes(object(1001)))).toMatchObject({ rule: "max_keys", field: "k1000" });
  expect(checkStrictJson(bytes(`[${object(600)},${object(600)}]`))).toMatchObject({ rule: "max_keys" });
});

test("refuses a document of more bytes than allowed before looking at it", () => {
  expect(checkStrictJson(bytes(" ".repeat(101)), { maxBytes: 100 })).toMatchObject({ rule: "max_bytes" });
});

test("reads a view into a larger buffer", () => {
  const large = bytes('xx{"a":1}xx');
  expect(parseStrictJson(large.subarray(2, 9))).toEqual({ a: 1 });
});

test("names a broken rule as INVALID_INPUT with the field", () => {
  const error = thrownBy(() => parseStrictJson(bytes('{"a":1,"a":2}')));
  expect(error).toMatchObject({ code: Code.InvalidArgument });
  expect(faultDetail(error)).toMatchObject({
    reason: ErrorReason.INVALID_INPUT,
    metadata: { field: "a", rule: "duplicate_key" },
    violations: [{ field: "a", message: "this key occurs twice" }],
  });
});

test("names a limit as INPUT_TOO_LARGE with the limit and the field", () => {
  const error = thrownBy(() => parseStrictJson(bytes('{"a":[[1]]}'), { maxDepth: 2 }));
  expect(faultDetail(error)).toMatchObject({
    reason: ErrorReason.INPUT_TOO_LARGE,
    metadata: { limit: "2", rule: "max_depth", field: "a[0]" },
  });
});

test("cuts a long path", () => {
  const violation = checkStrictJson(bytes(`{"${"k".repeat(5000)}":nil}`));
  expect(violation?.field.length).toBeLessThan(250);
});

test("agrees with JSON.parse on what is JSON, over many mutations of a document", () => {
  const source = String.raw`{"a":[1,-2.5e3,true,null],"b":{"c":"x\n\u00e9"},"d":""}`;
  const alphabet = '{}[]",:\\0-1e.tnu x';
  for (let at = 0; at < source.length; at++) {
    for (const char of alphabet) {
      for (const text of [
        source.slice(0, at) + char + source.slice(at + 1),
        source.slice(0, at) + char + source.slice(at),
      ]) {
        const violation = checkStrictJson(bytes(text));
        const isJson = thrownBy(() => JSON.parse(text) as unknown) === undefined;
        const isStricter = violation?.rule === "duplicate_key" || violation?.rule === "number_range";
        expect(violation === undefined || isStricter, text).toBe(isJson);
      }
    }
  }
});

function thrownBy(action: () => unknown): unknown {
  try {
    action();
    return undefined;
  } catch (error) {
    return error;
  }
}
