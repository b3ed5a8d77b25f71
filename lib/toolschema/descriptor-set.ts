import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { isKnownFile, KNOWN_FILES } from "./known-files.ts";

/** The most bytes of a descriptor set that somebody else made. */
export const MAX_DESCRIPTOR_BYTES = 1024 * 1024;

/** What a descriptor set may hold. An ordinary service has a tenth of each. */
const MAX_FILES = 200;
const MAX_TYPES = 2000;
const MAX_FIELDS = 10_000;
/** Comments are looked for one by one. */
const MAX_COMMENTS = 20_000;

/** Packages whose types have a meaning of their own here. Only the files that we know declare them. */
const RESERVED = /^(?:google\.protobuf|buf\.validate|reeve|grpc)(?:\.|$)/;

/**
 * The types of a google.protobuf.FileDescriptorSet that somebody else made, which is not trusted: it is held to limits,
 * and files that everybody imports, such as google/protobuf/timestamp.proto, are ours, whatever it says they hold.
 * Throws an Error that says what is wrong.
 */
export function readDescriptorSet(bytes: Uint8Array): FileRegistry {
  if (bytes.length > MAX_DESCRIPTOR_BYTES) throw new Error(`more than ${MAX_DESCRIPTOR_BYTES} bytes`);
  const set = fromBinary(FileDescriptorSetSchema, bytes);
  const own = set.file.filter((file) => !isKnownFile(file.name));
  assertLimits(own);
  const file = [...KNOWN_FILES, ...sortFiles(own)];
  return createFileRegistry({ ...set, file } satisfies FileDescriptorSet);
}

function assertLimits(files: readonly FileDescriptorProto[]): void {
  if (files.length > MAX_FILES) throw new Error(`more than ${MAX_FILES} files`);
  let types = 0;
  let fields = 0;
  let comments = 0;
  for (const file of files) {
    if (!/^[A-Za-z0-9_.]{0,128}$/.test(file.package)) throw new Error("a file has no proper package");
    if (RESERVED.test(file.package)) throw new Error(`${file.package} is not a package for others`);
    const messages = allMessages(file);
    types += messages.length + file.enumType.length + messages.reduce((sum, one) => sum + one.enumType.length, 0);
    fields += messages.reduce((sum, one) => sum + one.field.length, 0);
    comments += file.sourceCodeInfo?.location.length ?? 0;
    for (const message of messages) assertJsonNames(message);
  }
  if (types > MAX_TYPES) throw new Error(`more than ${MAX_TYPES} types`);
  if (fields > MAX_FIELDS) throw new Error(`more than ${MAX_FIELDS} fields`);
  if (comments > MAX_COMMENTS) throw new Error(`more than ${MAX_COMMENTS} places in the source`);
}

/** A list that grows while it is walked, so that no depth of nesting is too deep. */
function allMessages(file: FileDescriptorProto): DescriptorProto[] {
  const found = [...file.messageType];
  for (const message of found) found.push(...message.nestedType);
  return found;
}

/** JSON names become flags and keys; two fields of one name could not be told apart. */
function assertJsonNames({ name, field }: DescriptorProto): void {
  const seen = new Set<string>();
  for (const { jsonName } of field) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(jsonName) && jsonName !== "") throw new Error(`${name}: a bad JSON name`);
    if (jsonName === "__proto__" || seen.has(jsonName))
      throw new Error(`${name}: "${jsonName}" is no name for a field`);
    if (jsonName !== "") seen.add(jsonName);
  }
}

/**
 * Files in an order in which each comes after those that it imports. Throws an Error where one is missing that we do not
 * know either, or where they import each other.
 */
export function sortFiles(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  const done = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto, path: readonly FileDescriptorProto[]): void => {
    if (done.has(file)) return;
    if (path.includes(file)) throw new Error("files import each other");
    for (const name of file.dependency) {
      const imported = byName.get(name);
      if (imported !== undefined) add(imported, [...path, file]);
      else if (!isKnownFile(name)) throw new Error("an imported file is missing");
    }
    done.add(file);
  };
  for (const file of files) add(file, []);
  return [...done];
}
