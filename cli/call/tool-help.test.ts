import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { loadCatalog, toolByName } from "../../lib/toolschema/catalog-file.ts";
import { plain } from "../print/style.ts";
import { toolHelp } from "./tool-help.ts";

function helpFor(name: string, width = 80): string {
  const entry = toolByName(name);
  if (entry === undefined) throw new Error(`no tool ${name}`);
  return toolHelp(create(ToolSchema, entry), "laptop", { width, style: plain });
}

describe("a tool's help", () => {
  it("has the schema's own words about the tool and each flag", () => {
    const help = helpFor("fs.write").replace(/\s+/g, " ");
    expect(help).toContain("Usage: reeve call laptop fs.write --path TEXT [flags]");
    expect(help).toContain("Write a file: create it, replace it whole, or append to it.");
    expect(help).toContain("Needs the capability fs.write.");
    expect(help).toContain("May destroy what cannot be brought back.");
    expect(help).toContain("--mode replace|create|append Replace, create or append. Default replace.");
    expect(help).toContain("WRITE_MODE_APPEND: Add to its end, or create it.");
    expect(help).toContain("--data BASE64|@FILE");
    expect(help).toContain("--[no-]create-folders");
    expect(help).toMatch(/--path TEXT .*Required\./);
    expect(help).toContain("--wait <duration>");
  });

  it("keeps to the width", () => {
    for (const { name } of loadCatalog().tools) {
      const lines = helpFor(name)
        .split("\n")
        .filter((line) => !line.startsWith("Usage:"));
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    }
  });

  it("says that a call waits for a human", () => {
    const tool = create(ToolSchema, { name: "x", description: "Does x.", requiresApproval: true, inputSchema: {} });
    expect(toolHelp(tool, "d", { width: 80, style: plain })).toContain("Every call waits for a human's approval.");
  });

  it("of a hostile tool cannot act on the terminal", () => {
    const inputSchema = { properties: { a: { type: "string", description: "\x1b]0;owned\x07" } } };
    const tool = create(ToolSchema, { name: "x\x1b[1m", description: "\x1b[2J", inputSchema });
    expect(toolHelp(tool, "d", { width: 80, style: plain })).not.toContain("\x1b");
  });
});
