import { ScalarType } from "@bufbuild/protobuf";
import type { JsonSchema } from "../tool/json-schema.ts";
import { scalarSchema } from "./scalars.ts";

/** The messages that ProtoJSON writes in a form of their own. */
const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$" },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.Value": {},
  "google.protobuf.ListValue": { type: "array" },
  "google.protobuf.Empty": { type: "object", additionalProperties: false },
  "google.protobuf.Any": { type: "object", properties: { "@type": { type: "string" } }, required: ["@type"] },
  "google.protobuf.BoolValue": scalarSchema(ScalarType.BOOL),
  "google.protobuf.BytesValue": scalarSchema(ScalarType.BYTES),
  "google.protobuf.DoubleValue": scalarSchema(ScalarType.DOUBLE),
  "google.protobuf.FloatValue": scalarSchema(ScalarType.FLOAT),
  "google.protobuf.Int32Value": scalarSchema(ScalarType.INT32),
  "google.protobuf.Int64Value": scalarSchema(ScalarType.INT64),
  "google.protobuf.StringValue": scalarSchema(ScalarType.STRING),
  "google.protobuf.UInt32Value": scalarSchema(ScalarType.UINT32),
  "google.protobuf.UInt64Value": scalarSchema(ScalarType.UINT64),
};

/** The schema of a message that ProtoJSON writes in a form of its own, such as a Timestamp; undefined for others. */
export function wellKnownSchema(typeName: string): JsonSchema | undefined {
  return Object.hasOwn(WELL_KNOWN, typeName) ? WELL_KNOWN[typeName] : undefined;
}
