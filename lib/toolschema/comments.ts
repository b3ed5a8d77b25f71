import type { DescEnum, DescEnumValue, DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** The elements of a .proto file that carry a comment a tool schema needs. */
export type Commented = DescEnum | DescEnumValue | DescField | DescMessage | DescMethod | DescService;

const inFile = FileDescriptorProtoSchema.field;
const inMessage = DescriptorProtoSchema.field;

/**
 * The leading comment of an element as flowing text: wrapped lines are joined, blank lines and list items stay.
 * Undefined where there is none, and for descriptors without source information, such as those embedded in
 * generated code.
 */
export function leadingComment(element: Commented): string | undefined {
  const path = sourcePath(element);
  const location = fileOf(element).sourceCodeInfo?.location.find(
    (candidate) => candidate.path.length === path.length && candidate.path.every((part, i) => part === path[i]),
  );
  return flowing(location?.leadingComments ?? "") || undefined;
}

function flowing(comment: string): string {
  const paragraphs = comment.replace(/\r\n?/g, "\n").split(/\n[ \t]*\n/);
  return paragraphs.map((text) => text.trim().replace(/\s*\n\s*(?!\s|- )/g, " ")).join("\n\n");
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

/** Where an element stands in its file, as google/protobuf/descriptor.proto describes SourceCodeInfo.Location.path. */
function sourcePath(element: Commented): number[] {
  switch (element.kind) {
    case "service":
      return [inFile.service.number, element.file.proto.service.indexOf(element.proto)];
    case "rpc":
      return [
        ...sourcePath(element.parent),
        ServiceDescriptorProtoSchema.field.method.number,
        element.parent.proto.method.indexOf(element.proto),
      ];
    case "field":
      return [...sourcePath(element.parent), inMessage.field.number, element.parent.proto.field.indexOf(element.proto)];
    case "enum_value":
      return [
        ...sourcePath(element.parent),
        EnumDescriptorProtoSchema.field.value.number,
        element.parent.proto.value.indexOf(element.proto),
      ];
    case "message":
    case "enum":
      return typePath(element);
  }
}

function typePath(element: DescMessage | DescEnum): number[] {
  const { parent, file } = element;
  const isMessage = element.kind === "message";
  if (parent) {
    const list: readonly unknown[] = isMessage ? parent.proto.nestedType : parent.proto.enumType;
    const number = isMessage ? inMessage.nestedType.number : inMessage.enumType.number;
    return [...sourcePath(parent), number, list.indexOf(element.proto)];
  }
  const list: readonly unknown[] = isMessage ? file.proto.messageType : file.proto.enumType;
  return [isMessage ? inFile.messageType.number : inFile.enumType.number, list.indexOf(element.proto)];
}
