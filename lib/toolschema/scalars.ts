import { ScalarType } from "@bufbuild/protobuf";
import type { JsonSchema } from "../tool/json-schema.ts";

/** How ProtoJSON writes bytes: base64 with or without padding, in either alphabet. */
const BASE64 = "^[A-Za-z0-9+/_-]*={0,2}$";

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;
const UINT32_MAX = 2 ** 32 - 1;

/**
 * The schema of a scalar in ProtoJSON (https://protobuf.dev/programming-guides/json/). 64-bit integers may come as a
 * number or as a string of digits. Numbers of 32 bits, which ProtoJSON also takes as strings, are numbers only: one
 * way to say it is enough for a model.
 */
export function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64", pattern: BASE64 };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: "number" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", minimum: 0, maximum: UINT32_MAX };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", minimum: INT32_MIN, maximum: INT32_MAX };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: ["integer", "string"], minimum: 0, pattern: "^[0-9]{1,20}$" };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return { type: ["integer", "string"], pattern: "^-?[0-9]{1,19}$" };
  }
}

/** The schema of a map's keys, which are always strings in JSON. */
export function mapKeySchema(scalar: ScalarType): JsonSchema {
  if (scalar === ScalarType.STRING) return {};
  if (scalar === ScalarType.BOOL) return { enum: ["true", "false"] };
  return { pattern: "^-?[0-9]{1,20}$" };
}
