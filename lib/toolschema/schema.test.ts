import type { DescMessage, FileRegistry } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { beforeAll, describe, expect, it } from "vitest";
import { compileProtos } from "../../scripts/compile-proto.ts";
import type { JsonSchema } from "../tool/json-schema.ts";
import { jsonNames } from "./names.ts";
import { reachableMessages } from "./reach.ts";
import { messageSchema } from "./schema.ts";

const SAMPLE = `syntax = "proto3";
package sample.v1;
import "buf/validate/validate.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "reeve/options/v1/tool.proto";

// A request.
message Request {
  // Used in two places. See max_size.
  Point from = 1;
  // Used in two places.
  Point to_point = 2 [(buf.validate.field).required = true];
  // Used once.
  Once once = 3;
  // A tree.
  Node tree = 4;
  // A password.
  string password = 5 [(reeve.options.v1.secret) = true];
  // At most this many.
  uint32 max_size = 6 [(buf.validate.field).uint32.gt = 0];
  // When.
  google.protobuf.Timestamp when = 7;
  // Anything.
  google.protobuf.Struct anything = 8;
  oneof target {
    option (buf.validate.oneof).required = true;
    // By id.
    string device_id = 9;
    // By name.
    string name = 10 [(buf.validate.field).string.min_len = 1];
  }
  // May be left out.
  optional string note = 11 [(buf.validate.field).string.min_len = 3];
  option (buf.validate.message).cel_expression = "this.max_size < 9u";
}
// A point.
message Point {
  // The first.
  int32 x = 1;
}
// Held once.
message Once {
  // Its name,
  // on two lines.
  //
  // And a second paragraph.
  string name = 1 [(buf.validate.field).string.min_len = 1];
}
// A node.
message Node {
  // Its children.
  repeated Node children = 1;
}
// Holds itself at the root.
message Root {
  // More of them.
  repeated Root more = 1;
}
`;

let registry: FileRegistry;
beforeAll(async () => {
  registry = await compileProtos({ "sample/v1/sample.proto": SAMPLE });
});

function messageOf(name: string): DescMessage {
  const message = registry.getMessage(`sample.v1.${name}`);
  if (!message) throw new Error(`no message ${name}`);
  return message;
}

function schemaOf(name: string, direction: "input" | "output" = "input"): JsonSchema {
  const message = messageOf(name);
  const names = jsonNames(reachableMessages(message).keys());
  const secret = registry.getExtension("reeve.options.v1.secret");
  const options = { secret, command: undefined, deadline: undefined };
  return messageSchema(message, { direction, names, options, validator: createValidator({ registry }) });
}

function propertyOf(schema: JsonSchema, name: string): JsonSchema {
  return (schema.properties as Record<string, JsonSchema>)[name] ?? {};
}

describe("the schema of a message", () => {
  it("puts a message that is held twice into $defs and one that is held once in place", () => {
    const schema = schemaOf("Request");
    expect(propertyOf(schema, "from").$ref).toBe("#/$defs/sample.v1.Point");
    expect(propertyOf(schema, "toPoint").$ref).toBe("#/$defs/sample.v1.Point");
    expect(propertyOf(schema, "once").type).toBe("object");
    expect(Object.keys(schema.$defs ?? {})).toEqual(["sample.v1.Point", "sample.v1.Node"]);
  });

  it("refers to a message from within itself", () => {
    const defs = schemaOf("Request").$defs as Record<string, JsonSchema>;
    expect(propertyOf(defs["sample.v1.Node"] ?? {}, "children").items).toEqual({ $ref: "#/$defs/sample.v1.Node" });
    expect(propertyOf(schemaOf("Root"), "more").items).toEqual({ $ref: "#" });
  });

  it("requires what an empty message violates, in nested messages too", () => {
    const schema = schemaOf("Request");
    expect(schema.required).toEqual(["toPoint", "maxSize"]);
    expect(propertyOf(schema, "once").required).toEqual(["name"]);
    expect(schemaOf("Request", "output").required).toBeUndefined();
  });

  it("describes a field by its own comment, with the names that callers use", () => {
    const schema = schemaOf("Request");
    expect(propertyOf(schema, "from").description).toBe("Used in two places. See maxSize.");
    expect(propertyOf(schema, "once").description).toBe("Used once.");
    expect(propertyOf(propertyOf(schema, "once"), "name").description).toBe(
      "Its name, on two lines.\n\nAnd a second paragraph.",
    );
  });

  it("says in words which fields exclude each other, and keeps the root free of combinators", () => {
    const schema = schemaOf("Request");
    expect(schema.description).toBe("A request. Set exactly one of deviceId, name.");
    expect(Object.keys(schema)).not.toEqual(expect.arrayContaining(["oneOf"]));
    for (const keyword of ["oneOf", "anyOf", "allOf", "not", "if"]) expect(schema).not.toHaveProperty(keyword);
  });

  it("marks secrets, refuses unknown fields and keeps CEL as a comment", () => {
    const schema = schemaOf("Request");
    expect(propertyOf(schema, "password").writeOnly).toBe(true);
    expect(propertyOf(schema, "note").writeOnly).toBeUndefined();
    expect(schema.additionalProperties).toBe(false);
    expect(propertyOf(schema, "once").additionalProperties).toBe(false);
    expect(schema.$comment).toBe("this.max_size < 9u");
  });

  it("writes well-known types as ProtoJSON does", () => {
    const schema = schemaOf("Request");
    expect(propertyOf(schema, "when")).toEqual({ type: "string", format: "date-time", description: "When." });
    expect(propertyOf(schema, "anything")).toEqual({ type: "object", description: "Anything." });
  });
});
