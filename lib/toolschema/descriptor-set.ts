import { create, createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { isKnownFile, KNOWN_FILES } from "./known-files.ts";
import { measuredFiles } from "./measure.ts";

/** Packages whose types have a meaning of their own here. Only the files that we know declare them. */
const RESERVED = /^(?:google\.protobuf|buf\.validate|reeve|grpc)(?:\.|$)/;

/**
 * The types of a google.protobuf.FileDescriptorSet that another party made, which is not trusted: it is measured before
 * anything is built from it, and files that every party imports, such as google/protobuf/timestamp.proto, are ours,
 * whatever it says they hold. Throws LimitExceeded, or an Error that says what is wrong.
 */
export function readDescriptorSet(bytes: Uint8Array): FileRegistry {
  const own = measuredFiles(bytes, isKnownFile).map((file) => fromBinary(FileDescriptorProtoSchema, file));
  for (const file of own) assertOwn(file);
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [...KNOWN_FILES, ...sortFiles(own)] }));
}

function assertOwn(file: FileDescriptorProto): void {
  if (!/^[A-Za-z0-9_.]{0,128}$/.test(file.package)) throw new Error("a file has no proper package");
  if (RESERVED.test(file.package)) throw new Error(`${file.package} is not a package for others`);
  for (const message of allMessages(file)) assertJsonNames(message);
}

/** A list that grows while it is walked, so that no depth of nesting is too deep. */
function allMessages(file: FileDescriptorProto): DescriptorProto[] {
  const found = [...file.messageType];
  for (const message of found) found.push(...message.nestedType);
  return found;
}

/** JSON names become flags and keys; two fields of one name could not be distinguished. */
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
