import type { DescEnum, DescExtension, DescFile, DescMessage, DescOneof, Registry } from "@bufbuild/protobuf";
import {
  Edition,
  EnumOptionsSchema,
  EnumValueOptionsSchema,
  FileOptionsSchema,
  MessageOptionsSchema,
  OneofOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { fieldLines } from "./fields.ts";
import { block } from "./indent.ts";
import { type OptionEntry, optionEntries } from "./options.ts";

// One past the largest field number: how a descriptor writes `to max`.
const FIELD_NUMBER_END = 536870912;

/**
 * The .proto source of a file descriptor. Compiling it gives the same descriptor again; comments are not in a
 * descriptor, so there are none.
 *
 * Covers what `buf/validate/validate.proto` uses: proto2 and proto3, messages, enums, extensions and options of any
 * kind. Throws on services, groups and editions.
 */
export function printFile(file: DescFile, registry: Registry): string {
  if (file.services.length > 0) throw new Error(`${file.name}: services cannot be printed`);
  const lines = [
    `syntax = "${syntaxOf(file)}";`,
    `package ${file.proto.package};`,
    ...file.proto.dependency.map((path) => `import ${JSON.stringify(path)};`),
    ...statements(optionEntries(FileOptionsSchema, file.proto.options, registry)),
    ...file.enums.flatMap((desc) => enumLines(desc, registry)),
    ...extensionLines(file.extensions, registry),
    ...file.messages.flatMap((desc) => messageLines(desc, registry)),
  ];
  return `${lines.join("\n")}\n`;
}

function syntaxOf(file: DescFile): string {
  if (file.edition === Edition.EDITION_PROTO2) return "proto2";
  if (file.edition === Edition.EDITION_PROTO3) return "proto3";
  throw new Error(`${file.name}: editions cannot be printed`);
}

function statements(options: OptionEntry[]): string[] {
  return options.map((option) => `option ${option.name} = ${option.value};`);
}

function messageLines(message: DescMessage, registry: Registry): string[] {
  return block(`message ${message.name}`, [
    ...statements(optionEntries(MessageOptionsSchema, message.proto.options, registry)),
    ...message.nestedEnums.flatMap((desc) => enumLines(desc, registry)),
    ...message.nestedMessages.flatMap((desc) => messageLines(desc, registry)),
    ...message.members.flatMap((member) =>
      member.kind === "oneof" ? oneofLines(member, registry) : fieldLines(member, registry),
    ),
    ...message.proto.extensionRange.map((range) => `extensions ${rangeText(range.start, range.end - 1)};`),
    ...message.proto.reservedRange.map((range) => `reserved ${rangeText(range.start, range.end - 1)};`),
    ...message.proto.reservedName.map((name) => `reserved ${JSON.stringify(name)};`),
    ...extensionLines(message.nestedExtensions, registry),
  ]);
}

function oneofLines(oneof: DescOneof, registry: Registry): string[] {
  return block(`oneof ${oneof.name}`, [
    ...statements(optionEntries(OneofOptionsSchema, oneof.proto.options, registry)),
    ...oneof.fields.flatMap((field) => fieldLines(field, registry)),
  ]);
}

function enumLines(desc: DescEnum, registry: Registry): string[] {
  const values = desc.values.map((value) => {
    const options = optionEntries(EnumValueOptionsSchema, value.proto.options, registry);
    const suffix = options.length > 0 ? ` [${options.map((o) => `${o.name} = ${o.value}`).join(", ")}]` : "";
    return `${value.name} = ${value.number}${suffix};`;
  });
  return block(`enum ${desc.name}`, [
    ...statements(optionEntries(EnumOptionsSchema, desc.proto.options, registry)),
    ...values,
    ...desc.proto.reservedRange.map((range) => `reserved ${rangeText(range.start, range.end)};`),
    ...desc.proto.reservedName.map((name) => `reserved ${JSON.stringify(name)};`),
  ]);
}

function extensionLines(extensions: readonly DescExtension[], registry: Registry): string[] {
  const byExtendee = Map.groupBy(extensions, (extension) => extension.extendee.typeName);
  return [...byExtendee].flatMap(([extendee, group]) =>
    block(
      `extend .${extendee}`,
      group.flatMap((extension) => fieldLines(extension, registry)),
    ),
  );
}

function rangeText(first: number, last: number): string {
  if (first === last) return `${first}`;
  return `${first} to ${last >= FIELD_NUMBER_END - 1 ? "max" : last}`;
}
