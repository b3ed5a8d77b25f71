import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRegistry, fromBinary, toJson } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toolOutput } from "./run-tool.ts";
import { writeThirdParty, writeValidateProto } from "./third-party.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-third-party-"));
  await writeThirdParty(folder);
  await writeValidateProto(join(folder, "proto"));
});
afterAll(() => rm(folder, { recursive: true }));

describe("the derived protos", () => {
  it("give the embedded descriptor of validate.proto when they are compiled again", async () => {
    const image = join(folder, "image.binpb");
    const module = join(folder, "proto");
    await toolOutput("buf", ["build", module, "--as-file-descriptor-set", "--exclude-source-info", "-o", image]);
    const { file: files } = fromBinary(FileDescriptorSetSchema, await readFile(image));
    const compiled = files.find((file) => file.name === "buf/validate/validate.proto");
    expect(compiled && comparable(compiled)).toEqual(comparable(file_buf_validate_validate.proto));
  });

  it.each(["health/v1/health", "reflection/v1/reflection", "reflection/v1alpha/reflection"])(
    "include grpc/%s.proto",
    async (name) => {
      expect(await readFile(join(folder, `grpc/grpc/${name}.proto`), "utf8")).toContain("service ");
    },
  );
});

// A compiler fills in json_name and leaves out proto2, which is the default.
function comparable(file: FileDescriptorProto): unknown {
  const registry = createRegistry(file_buf_validate_validate);
  const json = toJson(FileDescriptorProtoSchema, { ...file, syntax: "" }, { registry });
  return JSON.parse(JSON.stringify(json, (key, value: unknown) => (key === "jsonName" ? undefined : value)));
}
