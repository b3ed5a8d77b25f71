import { create, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema, TimestampSchema, timestampFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { install, shareScratchBuffer } from "./scratch-writer.ts";

/** A class of writers of its own, so that the library's stays as it is until a test wants it changed. */
function scratchClass(): typeof BinaryWriter {
  const Class = class extends BinaryWriter {};
  expect(install(Class)).toBe(true);
  return Class;
}

const SIZES = [0, 1, 31, 32, 33, 127, 128, 129, 16_383, 16_384, 65_535, 65_536, 65_537, 200_000];

/** Every kind of value, with lengths at which a prefix or the buffer grows. */
function writeAll(writer: BinaryWriter, size: number): BinaryWriter {
  writer.tag(1, WireType.LengthDelimited).string("a".repeat(size));
  writer.tag(2, WireType.LengthDelimited).string("ü€😀".repeat(size / 4));
  writer.tag(3, WireType.LengthDelimited).bytes(new Uint8Array(size).fill(0xa5));
  writer.tag(4, WireType.Bit64).double(Math.PI).tag(5, WireType.Bit32).float(0.5);
  writer.tag(6, WireType.Varint).int32(-size).tag(7, WireType.Varint).uint64("18446744073709551615");
  writer.tag(8, WireType.Bit64).sfixed64(-5n).tag(9, WireType.Varint).sint64(-5n).tag(10, WireType.Bit32).fixed32(7);
  writer.tag(11, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).fork().tag(2, WireType.LengthDelimited).string("b".repeat(size)).join();
  return writer.join().tag(12, WireType.Varint).bool(true);
}

describe("a writer that begins in the shared buffer", () => {
  const Scratch = scratchClass();

  test.each(SIZES)("writes the bytes of the library's own, at size %i", (size) => {
    const expected = writeAll(new BinaryWriter(), size).finish();
    expect(writeAll(new Scratch(), size).finish()).toEqual(expected);
    // Again, in a buffer that others have written to.
    expect(writeAll(new Scratch(), size).finish()).toEqual(expected);
  });

  test("hands out bytes that later writers do not change", () => {
    const first = new Scratch().string("first").finish();
    const copy = first.slice();
    new Scratch().string("XXXXXXXXXXXX").finish();
    expect(first).toEqual(copy);
    expect(first.buffer.byteLength).toBe(first.length);
  });

  test("writes beside others that are not finished", () => {
    const [one, two, three] = [new Scratch(), new Scratch(), new Scratch()];
    one.double(1);
    two.double(2);
    three.string("c".repeat(70_000));
    one.string("one");
    two.string("two");
    const of = (value: number, text: string) => new BinaryWriter().double(value).string(text).finish();
    expect(two.finish()).toEqual(of(2, "two"));
    expect(three.finish()).toEqual(new BinaryWriter().string("c".repeat(70_000)).finish());
    expect(one.finish()).toEqual(of(1, "one"));
  });

  test("writes again after it has finished, beside another", () => {
    const again = new Scratch();
    again.double(1).finish();
    const other = new Scratch().double(2);
    again.double(3);
    expect(other.finish()).toEqual(new BinaryWriter().double(2).finish());
    expect(again.finish()).toEqual(new BinaryWriter().double(3).finish());
    expect(again.finish()).toEqual(new Uint8Array(0));
  });

  test("does not disturb others by failing half-way", () => {
    for (let i = 0; i < 3; i++) {
      const failed = new Scratch().string("half of a message");
      expect(() => failed.uint32(-1)).toThrow();
      expect(new Scratch().string("whole").finish()).toEqual(new BinaryWriter().string("whole").finish());
      expect(failed.finish()).toEqual(new BinaryWriter().string("half of a message").finish());
    }
  });
});

test("a writer of another make is left as it is", () => {
  class Eager extends BinaryWriter {
    constructor() {
      super();
      Object.assign(this, { buffer: new Uint8Array(16) });
    }
  }
  class Lending extends BinaryWriter {
    override finish(): Uint8Array<ArrayBuffer> {
      const { buffer, pos } = this as unknown as { buffer: Uint8Array<ArrayBuffer>; pos: number };
      Object.assign(this, { pos: 0 });
      return buffer.subarray(0, pos);
    }
  }
  class Renamed extends BinaryWriter {
    constructor() {
      super();
      Reflect.deleteProperty(this, "viewCache");
    }
  }
  for (const Class of [Eager, Lending, Renamed]) {
    expect(install(Class)).toBe(false);
    expect(Object.hasOwn(Class.prototype, "ensureCapacity")).toBe(false);
  }
});

test("messages of the whole process are encoded as before", () => {
  const nested = (depth: number): JsonObject => ({
    a: "x".repeat(depth * 40),
    b: depth,
    c: depth > 0 ? nested(depth - 1) : null,
  });
  const encode = () => [
    ...[0, 1, 5, 40].map((depth) => toBinary(StructSchema, fromJson(StructSchema, nested(depth)))),
    toBinary(ValueSchema, create(ValueSchema, { kind: { case: "numberValue", value: 1.5 } })),
    toBinary(TimestampSchema, timestampFromMs(1_700_000_000_123)),
  ];
  const before = encode();
  expect(shareScratchBuffer()).toBe(true);
  expect(Object.hasOwn(BinaryWriter.prototype, "ensureCapacity")).toBe(true);
  expect(encode()).toEqual(before);
  expect(shareScratchBuffer()).toBe(true);
});
