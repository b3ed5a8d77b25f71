import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeWorkspace } from "./compile-proto.ts";
import { repositoryRoot } from "./repository-root.ts";
import { runTool } from "./run-tool.ts";
import { withTemporaryFolder } from "./temporary-folder.ts";

const TEMPLATE = JSON.stringify({
  version: "v2",
  plugins: [
    {
      local: ["node", join(repositoryRoot, "scripts/protoc-gen-tools.ts")],
      out: "schema",
      strategy: "all",
      opt: ["target=ts"],
    },
  ],
});

/** Runs buf with the plugin on the repository's protos and one more service. */
async function generate(folder: string, comment: string): ReturnType<typeof runTool> {
  const source = `syntax = "proto3";
package sample.v1;
import "reeve/options/v1/capability.proto";
import "reeve/options/v1/tool.proto";
message Request {}
message Response {}
service Sample {
  option (reeve.options.v1.capability) = { name: "sample" title: "S" description: "Answer." risk: RISK_LOW };
  ${comment}
  rpc Ping(Request) returns (Response) {
    option (reeve.options.v1.tool) = { name: "sample.ping" capabilities: ["sample"] scope: SCOPE_ANY };
  }
}
`;
  await writeWorkspace(folder, { "sample/v1/sample.proto": source });
  return runTool("buf", ["generate", "--template", TEMPLATE], folder);
}

describe("protoc-gen-tools", () => {
  it("writes one catalog of all tools", async () => {
    await withTemporaryFolder(async (folder) => {
      const { code, output } = await generate(folder, "// Answer.");
      expect({ code, output }).toEqual({ code: 0, output: "" });
      const written: unknown = JSON.parse(await readFile(join(folder, "schema/catalog.json"), "utf8"));
      const tools = expect.arrayContaining([
        expect.objectContaining({ name: "fs.read" }),
        expect.objectContaining({ name: "sample.ping", method: "sample.v1.Sample/Ping" }),
      ]);
      const capabilities = expect.arrayContaining([
        expect.objectContaining({ name: "fs.read", tools: ["fs.read", "fs.search"] }),
        expect.objectContaining({ name: "sample", risk: "low", tools: ["sample.ping"] }),
      ]);
      expect(written).toEqual({ capabilities, tools });
    });
  });

  it("fails and names the RPC where a definition is not whole", async () => {
    await withTemporaryFolder(async (folder) => {
      const { code, output } = await generate(folder, "");
      expect(code).not.toBe(0);
      expect(output).toContain("sample.v1.Sample/Ping: the RPC has no comment");
    });
  });
});
