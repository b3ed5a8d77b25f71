import { create, createFileRegistry, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { toolMethodsOf } from "../../../../lib/toolschema/announced.ts";
import { sortFiles } from "../../../../lib/toolschema/descriptor-set.ts";
import { KNOWN_FILES } from "../../../../lib/toolschema/known-files.ts";

/**
 * The announcements of the services of some files, those without an annotated RPC left out: each with its own file and all
 * that it imports, in one order, so that the same files give the same bytes. Pure. Throws an Error where the files do not
 * fit together.
 *
 * @param name the name that the owner gave the server.
 */
export function announceServices(name: string, files: Iterable<FileDescriptorProto>): AnnouncedTools[] {
  const own = sortFiles([...files].sort((a, b) => (a.name < b.name ? -1 : 1)));
  const all = [...KNOWN_FILES, ...own];
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: all }));
  const services = own
    .flatMap((file) => registry.getFile(file.name)?.services ?? [])
    .filter((service) => toolMethodsOf(service).length > 0);
  return services.map(({ typeName, file }) => {
    const set = create(FileDescriptorSetSchema, { file: withImports(file.proto, all) });
    const descriptorSet = toBinary(FileDescriptorSetSchema, set);
    return create(AnnouncedToolsSchema, {
      name,
      definition: { case: "service", value: { service: typeName, descriptorSet } },
    });
  });
}

/** A file and all that it imports, each after what it imports. */
function withImports(file: FileDescriptorProto, sorted: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const wanted = new Set([file.name]);
  return sorted
    .toReversed()
    .filter((one) => {
      if (!wanted.has(one.name)) return false;
      for (const name of one.dependency) wanted.add(name);
      return true;
    })
    .reverse();
}
