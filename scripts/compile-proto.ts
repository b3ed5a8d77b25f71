import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { repositoryRoot } from "./repository-root.ts";
import { toolOutput } from "./run-tool.ts";
import { withTemporaryFolder } from "./temporary-folder.ts";

const BUF_YAML = "version: v2\nmodules: [{ path: proto }]\n";

/**
 * Compiles the repository's protos, and more, with their comments. For tests that need descriptors of a message or a
 * service that the product does not have.
 *
 * @param sources more .proto files, by their import path.
 */
export async function compileProtos(sources: Record<string, string> = {}): Promise<FileRegistry> {
  return withTemporaryFolder(async (folder) => {
    await writeWorkspace(folder, sources);
    const image = join(folder, "image.binpb");
    await toolOutput("buf", ["build", "--as-file-descriptor-set", "-o", image], folder);
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, await readFile(image)));
  });
}

/** Writes a buf workspace of the repository's protos and more into an empty folder. */
export async function writeWorkspace(folder: string, sources: Record<string, string>): Promise<void> {
  await cp(join(repositoryRoot, "proto"), join(folder, "proto"), { recursive: true });
  await writeFile(join(folder, "buf.yaml"), BUF_YAML);
  for (const [path, source] of Object.entries(sources)) {
    const target = join(folder, "proto", path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, source);
  }
}
