import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  EnumValueDescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  OneofDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
  SourceCodeInfoSchema,
} from "@bufbuild/protobuf/wkt";
import { createMeters, LIMITS, LimitExceeded, type LimitName, type Meter } from "./limits.ts";

/** What a part of a descriptor counts as, and what its own parts are. */
interface Shape {
  counts?: LimitName;
  parts: ReadonlyMap<number, Shape>;
  /** True for a declaration that can stand within another of its kind. */
  nests?: boolean;
}

const LEAF: ReadonlyMap<number, Shape> = new Map();
const options: Shape = { parts: LEAF };

const set = FileDescriptorSetSchema.field;
const file = FileDescriptorProtoSchema.field;
const message = DescriptorProtoSchema.field;

const field: Shape = { counts: "fields", parts: new Map([[FieldDescriptorProtoSchema.field.options.number, options]]) };
const oneof: Shape = { counts: "fields", parts: new Map([[OneofDescriptorProtoSchema.field.options.number, options]]) };
const enumValue: Shape = {
  counts: "enum_values",
  parts: new Map([[EnumValueDescriptorProtoSchema.field.options.number, options]]),
};
const enumType: Shape = {
  counts: "types",
  parts: new Map([
    [EnumDescriptorProtoSchema.field.value.number, enumValue],
    [EnumDescriptorProtoSchema.field.options.number, options],
  ]),
};
const messageParts = new Map([
  [message.field.number, field],
  [message.extension.number, field],
  [message.enumType.number, enumType],
  [message.oneofDecl.number, oneof],
  [message.options.number, options],
]);
const messageType: Shape = { counts: "types", parts: messageParts, nests: true };
messageParts.set(message.nestedType.number, messageType);
const rpc: Shape = { counts: "rpcs", parts: new Map([[MethodDescriptorProtoSchema.field.options.number, options]]) };
const service: Shape = {
  counts: "services",
  parts: new Map([
    [ServiceDescriptorProtoSchema.field.method.number, rpc],
    [ServiceDescriptorProtoSchema.field.options.number, options],
  ]),
};
const source: Shape = {
  parts: new Map([[SourceCodeInfoSchema.field.location.number, { counts: "source_locations", parts: LEAF }]]),
};
const FILE: Shape = {
  counts: "files",
  parts: new Map([
    [file.messageType.number, messageType],
    [file.enumType.number, enumType],
    [file.service.number, service],
    [file.extension.number, field],
    [file.options.number, options],
    [file.sourceCodeInfo.number, source],
  ]),
};

/**
 * The files of a google.protobuf.FileDescriptorSet as bytes, each a FileDescriptorProto, measured before anything is built
 * from them: what is counted are the parts as they stand in the bytes, in one pass. Throws LimitExceeded at the first part
 * that is over a limit, and an Error for bytes that are no message.
 *
 * @param skip leaves out files of these names, which are not measured.
 */
export function measuredFiles(bytes: Uint8Array, skip: (name: string) => boolean): Uint8Array[] {
  if (bytes.length > LIMITS.descriptor_bytes) throw new LimitExceeded("descriptor_bytes");
  const meter = createMeters();
  const parts = meter("descriptor_parts");
  const files: Uint8Array[] = [];
  for (const [number, content] of lengthDelimited(bytes, parts)) {
    if (number !== set.file.number || skip(nameOf(content, parts))) continue;
    measure(content, FILE, meter);
    files.push(content);
  }
  return files;
}

/**
 * Measures one more file, as bytes of a FileDescriptorProto, before it is decoded. The same meters for all files of a
 * server, so that they share one limit.
 */
export function measureFile(bytes: Uint8Array, meter: (limit: LimitName) => Meter): void {
  meter("announced_bytes").add(bytes.length);
  measure(bytes, FILE, meter);
}

/** Walks without recursion: how deep it goes is for the bytes to say. */
function measure(bytes: Uint8Array, shape: Shape, meter: (limit: LimitName) => Meter): void {
  const open: { bytes: Uint8Array; shape: Shape; nesting: number }[] = [{ bytes, shape, nesting: 0 }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (one.shape.counts !== undefined) meter(one.shape.counts).add(1);
    if (one.nesting > LIMITS.nesting) throw new LimitExceeded("nesting");
    const nesting = one.nesting + (one.shape.nests === true ? 1 : 0);
    for (const [number, content] of lengthDelimited(one.bytes, meter("descriptor_parts"))) {
      const part = one.shape.parts.get(number);
      if (part !== undefined) open.push({ bytes: content, shape: part, nesting });
    }
  }
}

/** The name of a file, as bytes of a FileDescriptorProto, without decoding the rest. */
export function nameOfFile(bytes: Uint8Array): string {
  return nameOf(bytes, createMeters()("descriptor_parts"));
}

/** The last name counts, as for any field that occurs more than once. */
function nameOf(bytes: Uint8Array, parts: Meter): string {
  let name: Uint8Array | undefined;
  for (const [number, content] of lengthDelimited(bytes, parts)) {
    if (number === file.name.number) name = content;
  }
  return new TextDecoder().decode(name);
}

/** The fields of a message that hold bytes, texts or messages, by number. All fields are counted. */
function* lengthDelimited(bytes: Uint8Array, parts: Meter): Generator<[number, Uint8Array]> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    parts.add(1);
    const [number, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) yield [number, reader.bytes()];
    else reader.skip(wireType, number);
  }
}
