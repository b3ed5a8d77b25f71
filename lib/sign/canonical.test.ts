import type { JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../fault/fault.ts";
import { canonicalJson, digestOf, sha256Hex } from "./canonical.ts";

describe("canonicalJson", () => {
  it("writes the example of RFC 8785 §3.2.2", () => {
    // As text, because the point is how numbers are read and written again.
    const text =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
    const value = JSON.parse(text) as JsonValue;
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it("orders keys by UTF-16 code units, as RFC 8785 §3.2.3 does", () => {
    const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\u{1f600}": 5, "\u0080": 6, "\u00f6": 7 };
    const keys = Object.keys(JSON.parse(canonicalJson(value)) as object);
    expect(canonicalJson(value).match(/:(\d)/g)?.join("")).toBe(":2:4:6:7:1:5:3");
    expect(keys.length).toBe(7);
  });

  it("does not depend on the order in which keys were set", () => {
    expect(canonicalJson({ b: [1, { d: 1, c: 2 }], a: "x" })).toBe(canonicalJson({ a: "x", b: [1, { c: 2, d: 1 }] }));
  });

  it("keeps a key named __proto__", () => {
    expect(canonicalJson(JSON.parse('{"__proto__":1,"a":2}') as JsonValue)).toBe('{"__proto__":1,"a":2}');
  });

  it("refuses what has no canonical form as invalid input", () => {
    const cycle: { [key: string]: JsonValue } = {};
    cycle.self = cycle;
    const bad = ["\ud800", { "\udfff": 1 }, Number.NaN, [Number.POSITIVE_INFINITY], cycle, undefined, 1n];
    for (const value of bad) {
      let error: unknown;
      try {
        canonicalJson(value as JsonValue);
      } catch (e: unknown) {
        error = e;
      }
      expect(reasonOf(error)).toBe(ErrorReason.INVALID_INPUT);
      expect(error).toBeDefined();
    }
  });

  it("takes deep nesting without overflowing the stack", () => {
    const depth = 20_000;
    const deep = JSON.parse("[".repeat(depth) + "]".repeat(depth)) as JsonValue;
    expect(canonicalJson(deep).length).toBe(2 * depth);
  });
});

describe("digestOf", () => {
  it("is the SHA-256 of the canonical text in hex", () => {
    expect(digestOf({ b: 1, a: [] })).toBe(sha256Hex('{"a":[],"b":1}'));
    expect(digestOf({ a: 1 })).toMatch(/^[0-9a-f]{64}$/);
  });

  it("differs for values that differ in type only", () => {
    expect(new Set([digestOf({ a: 1 }), digestOf({ a: "1" }), digestOf({ a: [1] }), digestOf({ a: true })]).size).toBe(
      4,
    );
  });
});

describe("sha256Hex", () => {
  it("is the FIPS 180-4 example, for text and for bytes", () => {
    const expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect([sha256Hex("abc"), sha256Hex(Buffer.from("abc"))]).toEqual([expected, expected]);
  });
});
