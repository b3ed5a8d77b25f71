import { create, type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CallToolsResponseSchema } from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { ExecRequestSchema } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { assertNoUnknownFields } from "./unknown-fields.ts";

/** A message with field 900, which nothing here has, inside of the given fields. */
function strange(...inside: number[]): Uint8Array {
  let bytes = new BinaryWriter().tag(900, WireType.Varint).uint32(1).finish();
  for (const field of inside) bytes = new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish();
  return bytes;
}

function fieldIn(desc: DescMessage, bytes: Uint8Array): string | undefined {
  try {
    assertNoUnknownFields(desc, fromBinary(desc, bytes));
  } catch (error: unknown) {
    return faultDetail(error)?.violations[0]?.field;
  }
  return undefined;
}

test("a field that this version does not know is named, wherever it is", () => {
  expect(fieldIn(ExecRequestSchema, strange())).toBe("#900");
  // events[0].call.error
  expect(fieldIn(CallToolsResponseSchema, strange(14, 2, 1))).toBe("events[0].call.error.#900");
  // The value of a map's entry has number 2.
  expect(fieldIn(StructSchema, strange(2, 1))).toBe('fields[""].#900');
});

test("what is known is let through", () => {
  expect(() => assertNoUnknownFields(ExecRequestSchema, create(ExecRequestSchema, { argv: ["a"] }))).not.toThrow();
  const fields = { a: { kind: { case: "boolValue", value: true } } } as const;
  expect(() => assertNoUnknownFields(StructSchema, create(StructSchema, { fields }))).not.toThrow();
});
