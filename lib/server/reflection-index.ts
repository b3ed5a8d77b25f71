import {
  createRegistry,
  type DescExtension,
  type DescFile,
  type DescService,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** The schema of the served services and everything they import. */
export interface ReflectionIndex {
  /** Full names of the served services, sorted. */
  readonly services: readonly string[];
  /** The file of a name such as "reeve/tools/v1/device.proto". */
  fileNamed(name: string): DescFile | undefined;
  /** The file that declares a message, field, oneof, enum, value, extension, service or method. */
  fileDeclaring(symbol: string): DescFile | undefined;
  extension(typeName: string, number: number): DescExtension | undefined;
  /** The extension numbers of a message, ascending; undefined where there is no such message. */
  extensionNumbers(typeName: string): number[] | undefined;
  /** A file and all it imports, the file first, as serialized FileDescriptorProto. */
  withImports(file: DescFile): Map<string, Uint8Array>;
}

/** Indexes what reflection is asked for. Descriptors in generated code carry no comments, so neither does the answer. */
export function indexServices(services: readonly DescService[]): ReflectionIndex {
  const files = new Map<string, DescFile>();
  for (const service of services) addWithImports(service.file, files);
  const registry = createRegistry(...files.values());
  const extensions = [...registry].filter((type) => type.kind === "extension");
  const encoded = new Map<string, Uint8Array>();
  return {
    services: services.map((service) => service.typeName).sort(),
    fileNamed: (name) => files.get(name.replace(/\.proto$/, "")),
    fileDeclaring: (symbol) => declaringFile(registry, symbol),
    extension: (typeName, number) =>
      extensions.find((ext) => ext.extendee.typeName === typeName && ext.number === number),
    extensionNumbers(typeName) {
      if (registry.getMessage(typeName) === undefined) return undefined;
      const own = extensions.filter((ext) => ext.extendee.typeName === typeName);
      return own.map((ext) => ext.number).sort((a, b) => a - b);
    },
    withImports(file) {
      const found = addWithImports(file, new Map<string, DescFile>());
      return new Map([...found].map(([name, desc]) => [name, encode(desc, encoded)]));
    },
  };
}

function addWithImports(file: DescFile, files: Map<string, DescFile>): Map<string, DescFile> {
  if (files.has(file.name)) return files;
  files.set(file.name, file);
  for (const dependency of file.dependencies) addWithImports(dependency, files);
  return files;
}

/** A member's name is its parent's with one more segment; an enum value's is its enum's sibling. */
function declaringFile(registry: Registry, symbol: string): DescFile | undefined {
  const type = registry.get(symbol);
  if (type !== undefined) return type.file;
  const cut = symbol.lastIndexOf(".");
  const [scope, member] = [symbol.slice(0, Math.max(cut, 0)), symbol.slice(cut + 1)];
  const parent = registry.get(scope);
  if (parent?.kind === "message") {
    // A registry leaves out the entries of maps, so nested messages are looked up as they were declared.
    const own = [...parent.fields, ...parent.oneofs, ...parent.proto.nestedType].some((desc) => desc.name === member);
    if (own) return parent.file;
  }
  if (parent?.kind === "service") return parent.methods.some((desc) => desc.name === member) ? parent.file : undefined;
  for (const candidate of registry) {
    if (
      candidate.kind === "enum" &&
      scopeOf(candidate.typeName) === scope &&
      candidate.values.some((value) => value.name === member)
    ) {
      return candidate.file;
    }
  }
  return undefined;
}

function scopeOf(typeName: string): string {
  return typeName.slice(0, Math.max(typeName.lastIndexOf("."), 0));
}

function encode(file: DescFile, cache: Map<string, Uint8Array>): Uint8Array {
  let bytes = cache.get(file.name);
  if (bytes === undefined) {
    bytes = toBinary(FileDescriptorProtoSchema, file.proto);
    cache.set(file.name, bytes);
  }
  return bytes;
}
