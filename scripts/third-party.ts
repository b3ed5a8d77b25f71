import { cp, mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createRegistry } from "@bufbuild/protobuf";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printFile } from "./proto-print/print-file.ts";
import { repositoryRoot } from "./repository-root.ts";

const require = createRequire(import.meta.url);

/** The .proto files that npm packages hold as they are, by where buf wants them. */
const GRPC_PROTOS = {
  "grpc/health/v1/health.proto": "grpc-health-check/proto/health/v1/health.proto",
  "grpc/reflection/v1/reflection.proto": "@grpc/reflection/build/proto/grpc/reflection/v1/reflection.proto",
  "grpc/reflection/v1alpha/reflection.proto": "@grpc/reflection/build/proto/grpc/reflection/v1alpha/reflection.proto",
};

/** Writes the protos of gRPC into `<folder>/grpc`, from the npm packages that are installed: for our own servers only. */
export async function writeThirdParty(folder: string): Promise<void> {
  for (const [path, source] of Object.entries(GRPC_PROTOS)) {
    await cp(fileOfPackage(source), join(folder, "grpc", path));
  }
}

/**
 * Writes validate.proto into the folder of our own protos, which import it: a copy of that folder alone generates clients,
 * without buf's registry, and the rules are always those that run.
 */
export async function writeValidateProto(protoFolder: string): Promise<void> {
  const path = join(protoFolder, "buf/validate/validate.proto");
  const note = "// Derived from the descriptor in npm @bufbuild/protovalidate (Apache-2.0). DO NOT EDIT.\n";
  const source = printFile(file_buf_validate_validate, createRegistry(file_buf_validate_validate));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, note + source);
}

function fileOfPackage(path: string): string {
  const [, name = "", rest = ""] = /^((?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(path) ?? [];
  return join(dirname(require.resolve(`${name}/package.json`)), rest);
}

if (import.meta.main) {
  await writeThirdParty(join(repositoryRoot, "third_party"));
  await writeValidateProto(join(repositoryRoot, "proto"));
}
