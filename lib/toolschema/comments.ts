import type { DescEnum, DescEnumValue, DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  type EnumDescriptorProto,
  EnumDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** The elements of a .proto file that carry a comment a tool schema needs. */
export type Commented = DescEnum | DescEnumValue | DescField | DescMessage | DescMethod | DescService;

const inFile = FileDescriptorProtoSchema.field;
const inMessage = DescriptorProtoSchema.field;

/** The comments of one file, by the element's own descriptor. */
type Comments = ReadonlyMap<object, string>;

/** Read once for each file: looking for one element's comment among all of a file would be quadratic for the file. */
const known = new WeakMap<FileDescriptorProto, Comments>();

/**
 * The leading comment of an element as flowing text: wrapped lines are joined, blank lines and list items stay.
 * Undefined where there is none, and for descriptors without source information, such as those embedded in
 * generated code.
 */
export function leadingComment(element: Commented): string | undefined {
  const file = fileOf(element);
  const comments = known.get(file) ?? commentsOf(file);
  known.set(file, comments);
  return flowing(comments.get(element.proto) ?? "") || undefined;
}

/** Takes time linear in the text: how long its runs of spaces are is for the file's author to say. */
function flowing(comment: string): string {
  const paragraphs: string[][] = [[]];
  for (const line of comment.trim().split(/\r\n?|\n/)) {
    if (line.trim() === "") paragraphs.push([]);
    else paragraphs.at(-1)?.push(line);
  }
  return paragraphs
    .filter((lines) => lines.length > 0)
    .map(joined)
    .join("\n\n");
}

/** A list's items keep their lines. */
function joined(lines: readonly string[]): string {
  const pieces = lines.map((line, at) => {
    const before = at === 0 ? "" : isItem(line) ? "\n" : " ";
    const text = isItem(line) ? line : line.trimStart();
    return before + (isItem(lines[at + 1] ?? "") ? text : text.trimEnd());
  });
  return pieces.join("").trim();
}

function isItem(line: string): boolean {
  return /^\s*- /.test(line);
}

function fileOf(element: Commented): FileDescriptorProto {
  switch (element.kind) {
    case "rpc":
    case "enum_value":
    case "field":
      return element.parent.file.proto;
    case "service":
    case "message":
    case "enum":
      return element.file.proto;
  }
}

/** Where elements stand in a file is as google/protobuf/descriptor.proto describes SourceCodeInfo.Location.path. */
function commentsOf(file: FileDescriptorProto): Comments {
  const byPath = new Map<string, string>();
  for (const { path, leadingComments } of file.sourceCodeInfo?.location ?? []) {
    const key = path.join(".");
    if (!byPath.has(key)) byPath.set(key, leadingComments);
  }
  const comments = new Map<object, string>();
  if (byPath.size === 0) return comments;
  for (const [element, path] of elementsOf(file)) {
    const comment = byPath.get(path);
    if (comment !== undefined) comments.set(element, comment);
  }
  return comments;
}

/** All elements of a file that carry comments, each with its path. */
function* elementsOf(file: FileDescriptorProto): Generator<[object, string]> {
  yield* enumsOf(file.enumType, `${inFile.enumType.number}`);
  for (const [at, service] of file.service.entries()) {
    const path = `${inFile.service.number}.${at}`;
    yield [service, path];
    yield* numbered(service.method, `${path}.${ServiceDescriptorProtoSchema.field.method.number}`);
  }
  const messages = [...numbered(file.messageType, `${inFile.messageType.number}`)];
  // Grows while it is walked, so that no depth of nesting is too deep.
  for (const [message, path] of messages) {
    yield [message, path];
    yield* numbered(message.field, `${path}.${inMessage.field.number}`);
    yield* enumsOf(message.enumType, `${path}.${inMessage.enumType.number}`);
    messages.push(...numbered(message.nestedType, `${path}.${inMessage.nestedType.number}`));
  }
}

function* enumsOf(enums: readonly EnumDescriptorProto[], list: string): Generator<[object, string]> {
  for (const [one, path] of numbered(enums, list)) {
    yield [one, path];
    yield* numbered(one.value, `${path}.${EnumDescriptorProtoSchema.field.value.number}`);
  }
}

function* numbered<T extends object>(elements: readonly T[], list: string): Generator<[T, string]> {
  for (const [at, element] of elements.entries()) yield [element, `${list}.${at}`];
}
