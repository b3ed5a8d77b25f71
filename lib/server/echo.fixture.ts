import { createFileRegistry, createRegistry, fromJson, type JsonObject, type Message } from "@bufbuild/protobuf";
import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
import {
  FileDescriptorProtoSchema,
  file_google_protobuf_descriptor,
  file_google_protobuf_struct,
} from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_reeve_options_v1_access } from "../../gen/ts/reeve/options/v1/access_pb.ts";

export type EchoMessage = Message<"reeve.test.v1.EchoMessage"> & {
  text: string;
  maxBytes: number;
  words: string[];
  env: { [key: string]: string };
  inner?: EchoMessage;
  data?: JsonObject;
};

type Method<Kind extends string> = {
  methodKind: Kind;
  input: typeof EchoMessageSchema;
  output: typeof EchoMessageSchema;
};

const access = (...roles: string[]): JsonObject => ({ "[reeve.options.v1.access]": { roles } });
const rpc = (name: string, options: JsonObject, streams: JsonObject = {}): JsonObject => ({
  name,
  inputType: ".reeve.test.v1.EchoMessage",
  outputType: ".reeve.test.v1.EchoMessage",
  options,
  ...streams,
});
const field = (name: string, number: number, type: string, more: JsonObject = {}): JsonObject => ({
  name,
  jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  number,
  type: `TYPE_${type}`,
  label: "LABEL_OPTIONAL",
  ...more,
});
const message = (typeName: string): JsonObject => ({ typeName });

const file: JsonObject = {
  name: "reeve/test/v1/echo.proto",
  package: "reeve.test.v1",
  syntax: "proto3",
  dependency: ["google/protobuf/struct.proto", "buf/validate/validate.proto", "reeve/options/v1/access.proto"],
  messageType: [
    {
      name: "EchoMessage",
      field: [
        field("text", 1, "STRING", { options: { "[buf.validate.field]": { string: { maxLen: "100" } } } }),
        field("max_bytes", 2, "INT32", { options: { "[buf.validate.field]": { int32: { gte: 0 } } } }),
        field("words", 3, "STRING", {
          label: "LABEL_REPEATED",
          options: { "[buf.validate.field]": { repeated: { items: { string: { minLen: "1" } } } } },
        }),
        field("inner", 4, "MESSAGE", message(".reeve.test.v1.EchoMessage")),
        field("data", 5, "MESSAGE", message(".google.protobuf.Struct")),
        field("env", 6, "MESSAGE", { label: "LABEL_REPEATED", ...message(".reeve.test.v1.EchoMessage.EnvEntry") }),
      ],
      nestedType: [
        {
          name: "EnvEntry",
          field: [field("key", 1, "STRING"), field("value", 2, "STRING")],
          options: { mapEntry: true },
        },
      ],
    },
  ],
  service: [
    {
      name: "Echo",
      method: [
        rpc("Say", { ...access("ROLE_AGENT", "ROLE_OPERATOR"), idempotencyLevel: "NO_SIDE_EFFECTS" }),
        rpc("Admin", access("ROLE_OPERATOR")),
        rpc("Forgotten", {}),
        rpc("Down", access("ROLE_AGENT"), { serverStreaming: true }),
        rpc("Up", access("ROLE_AGENT"), { clientStreaming: true }),
        rpc("Both", access("ROLE_AGENT"), { clientStreaming: true, serverStreaming: true }),
      ],
    },
  ],
};

const imports = [
  file_google_protobuf_descriptor,
  file_google_protobuf_struct,
  file_buf_validate_validate,
  file_reeve_options_v1_access,
];
const proto = fromJson(FileDescriptorProtoSchema, file, { registry: createRegistry(...imports) });
const registry = createFileRegistry(proto, (name) => imports.find((known) => `${known.name}.proto` === name));

/** The message of the test service. */
export const EchoMessageSchema = registry.getMessage("reeve.test.v1.EchoMessage") as GenMessage<EchoMessage>;

/** A service with an RPC of each kind; only the tests of this folder use it. */
export const Echo = registry.getService("reeve.test.v1.Echo") as unknown as GenService<{
  say: Method<"unary">;
  admin: Method<"unary">;
  forgotten: Method<"unary">;
  down: Method<"server_streaming">;
  up: Method<"client_streaming">;
  both: Method<"bidi_streaming">;
}>;
