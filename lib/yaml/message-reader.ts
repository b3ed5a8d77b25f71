import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, durationFromMs } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { file_alias } from "../../gen/ts/reeve/options/v1/file_field_pb.ts";
import { parseDuration } from "./duration.ts";
import { enumNames } from "./message-schema.ts";
import { type Hints, isAbsent, type YamlNode, type YamlReader } from "./yaml-reader.ts";

/** A message that was read from a YAML file. */
export interface ReadMessage<Desc extends DescMessage> {
  message: MessageShape<Desc>;
  /** The node of each field that is stated, by its path in names of the .proto file, such as "limits.max_turns". */
  nodes: ReadonlyMap<string, YamlNode>;
}

const validator = createValidator();

/**
 * Reads a mapping as a message: the keys are the fields' names in the .proto file, or aliases of them (file_alias), enums are
 * written in small letters without their prefix, and durations such as "10m". Whatever does not fit, or breaks the message's
 * rules, is reported at its line.
 */
export function readMessage<Desc extends DescMessage>(
  reader: YamlReader,
  node: YamlNode,
  desc: Desc,
  what: string,
  hints?: Hints,
): ReadMessage<Desc> {
  const nodes = new Map<string, YamlNode>();
  const message = readFields(reader, node, desc, { what, path: "", nodes, hints }) as MessageShape<Desc>;
  reportViolations(reader, node, desc, message, nodes);
  return { message, nodes };
}

/** Where in the file a message stands. */
interface Place {
  what: string;
  path: string;
  nodes: Map<string, YamlNode>;
  hints?: Hints | undefined;
}

function readFields(
  reader: YamlReader,
  node: YamlNode,
  desc: DescMessage,
  { what, path, nodes, hints }: Place,
): MessageShape<DescMessage> {
  const message = create(desc);
  const target = reflect(desc, message);
  const keys = desc.fields.flatMap((field) => [field.name, ...getOption(field, file_alias)]);
  const stated = reader.fields(node, what, keys, hints);
  for (const field of desc.fields) {
    const [name, ...others] = [field.name, ...getOption(field, file_alias)].filter((key) => stated.has(key));
    if (name === undefined) continue;
    const value = stated.get(name);
    for (const other of others)
      reader.report(stated.get(other), `${other} is another name of ${name}: write one of them`);
    if (isAbsent(value)) continue;
    const at = path + field.name;
    nodes.set(at, value);
    const shown = path + name;
    if (field.fieldKind === "message" && field.message.typeName !== DurationSchema.typeName) {
      target.set(
        field,
        reflect(field.message, readFields(reader, value, field.message, { what: shown, path: `${at}.`, nodes })),
      );
    } else if (field.fieldKind === "list" && field.listKind === "scalar") {
      for (const [index, item] of reader.items(value, shown).entries()) {
        nodes.set(`${at}[${index}]`, item);
        const text = reader.text(item, `an entry of ${shown}`);
        if (text === undefined && isAbsent(item)) reader.report(item, `an entry of ${shown} must be a text`);
        target.get(field).add(text ?? "");
      }
    } else {
      const read = readValue(reader, value, field, shown);
      if (read !== undefined) target.set(field, read);
    }
  }
  return message;
}

function readValue(reader: YamlReader, node: YamlNode, field: DescField, what: string): unknown {
  if (field.message?.typeName === DurationSchema.typeName) {
    const written = reader.data(node);
    const ms = typeof written === "string" ? parseDuration(written) : undefined;
    if (ms === undefined) reader.report(node, `${what} must be a duration such as 30s, 10m, 2h or 1d`);
    return ms === undefined ? undefined : reflect(DurationSchema, durationFromMs(ms));
  }
  if (field.enum) return readEnum(reader, node, field.enum, what);
  switch (field.scalar) {
    case ScalarType.STRING:
      return reader.text(node, what);
    case ScalarType.BOOL:
      return reader.flag(node, what);
    case ScalarType.UINT32:
    case ScalarType.UINT64:
      return readCount(reader, node, field.scalar, what);
    default:
      throw new TypeError(`the field ${field.name} has no type that a file can state`);
  }
}

function readEnum(reader: YamlReader, node: YamlNode, desc: DescEnum, what: string): number | undefined {
  const names = enumNames(desc);
  const written = reader.data(node);
  const at = typeof written === "string" ? names.indexOf(written) : -1;
  const found = desc.values.filter(({ number }) => number !== 0)[at]?.number;
  if (found === undefined)
    reader.report(node, `${what} must be one of ${names.join(", ")}, not ${JSON.stringify(written)}`);
  return found;
}

function readCount(reader: YamlReader, node: YamlNode, scalar: ScalarType, what: string): number | bigint | undefined {
  const value = reader.data(node);
  const most = scalar === ScalarType.UINT32 ? 2 ** 32 - 1 : Number.MAX_SAFE_INTEGER;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most)
    return scalar === ScalarType.UINT32 ? value : BigInt(value);
  reader.report(node, `${what} must be a whole number from 0`);
  return undefined;
}

function reportViolations(
  reader: YamlReader,
  root: YamlNode,
  desc: DescMessage,
  message: MessageShape<DescMessage>,
  nodes: ReadonlyMap<string, YamlNode>,
): void {
  const result = validator.validate(desc, message);
  if (result.kind === "error") throw result.error;
  for (const { field, message: said } of result.kind === "invalid" ? result.violations : []) {
    let path = "";
    for (const step of field) {
      if (step.kind === "list_sub") path += `[${step.index}]`;
      else if (step.kind === "field") path += `${path === "" ? "" : "."}${step.name}`;
    }
    const at = nodes.get(path) ?? root;
    // What could not be read has its default here, which is not what the file says.
    if (!reader.problems.some(({ line }) => line === reader.lineOf(at))) reader.report(at, `${path}: ${said}`);
  }
}
