import { create, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Tool, ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { reasonOf } from "../fault/fault.ts";
import type { MergedTool } from "../model-tools/merge-offers.ts";
import { mcpToolset, routeCall } from "./toolset.ts";

const laptop = { id: "dev-1", name: "laptop" };
const server = { id: "dev-2", name: "server" };
const toolOf = (name: string, inputSchema: JsonObject = { type: "object" }, more: Partial<Tool> = {}): Tool =>
  create(ToolSchema, { name, description: "It does.", capabilities: ["a.b"], inputSchema, ...more } as never);
const listedOf = (inputSchema: JsonObject) =>
  mcpToolset([laptop], [{ device: laptop, tool: toolOf("t", inputSchema) }]);

describe("the tools of a client", () => {
  test("are named as every client takes names, by name, the face's own last", () => {
    const tools = ["weather:now", "fs.read", "exec"].map((name) => ({ device: laptop, tool: toolOf(name) }));
    const { listed } = mcpToolset([laptop], tools);
    expect(listed.map(({ name }) => name)).toEqual(["exec", "fs_read", "weather__now", "call_cancel", "call_result"]);
  });

  test("are one for each name: of two, the first by its own name, and never in place of the face's own", () => {
    const tools = ["fs_read", "fs.read", "call.result"].map((name) => ({ device: laptop, tool: toolOf(name) }));
    const { listed, byName } = mcpToolset([laptop], tools);
    expect(listed.map(({ name }) => name)).toEqual(["fs_read", "call_cancel", "call_result"]);
    expect(byName.get("fs_read")?.tool.name).toBe("fs.read");
    expect(byName.has("call_result")).toBe(false);
  });

  test("have the hints of their definitions, and the cautious ones where there are none", () => {
    const annotations = { readOnly: true, destructive: false, idempotent: true, openWorld: false };
    const known = mcpToolset([laptop], [{ device: laptop, tool: toolOf("a", {}, { annotations } as never) }]);
    expect(known.listed[0]?.annotations).toEqual({
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    });
    expect(listedOf({}).listed[0]?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  });

  test("keep what JSON Schema has, without what is the gate's own", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      allOf: [{ required: ["a"] }],
      properties: { a: { type: "string", "x-reeve-secret": true } },
    };
    expect(listedOf(schema).listed[0]?.inputSchema).toEqual({
      ...schema,
      properties: { a: { type: "string" } },
    });
  });

  test("have one type in each place", () => {
    const properties = {
      size: { type: ["integer", "string"], minimum: 0 },
      type: { type: "string", enum: ["type"] },
      both: { anyOf: [{ minimum: 1 }], type: ["integer", "null"] },
    };
    expect(listedOf({ type: "object", properties }).listed[0]?.inputSchema).toEqual({
      type: "object",
      properties: {
        size: { minimum: 0, anyOf: [{ type: "integer" }, { type: "string" }] },
        type: { type: "string", enum: ["type"] },
        both: { anyOf: [{ minimum: 1 }], allOf: [{ anyOf: [{ type: "integer" }, { type: "null" }] }] },
      },
    });
  });
});

describe("the device of a call", () => {
  const offers = [laptop, server].map((device) => ({ device, tool: toolOf("exec") }));
  const both = mcpToolset([laptop, server], offers);
  const exec = both.byName.get("exec") as MergedTool;

  test("is named in the schema and in the call where there is more than one", () => {
    expect(both.listed[0]?.inputSchema).toMatchObject({
      properties: { device: { enum: ["laptop", "server"] } },
      required: ["device"],
    });
    expect(routeCall(both, exec, { device: "server", argv: ["a"] })).toEqual({
      deviceId: "dev-2",
      input: { argv: ["a"] },
    });
    const reasons = [{}, { device: "third" }].map((input) => {
      try {
        return routeCall(both, exec, input);
      } catch (error: unknown) {
        return reasonOf(error);
      }
    });
    expect(reasons).toEqual([ErrorReason.DEVICE_REQUIRED, ErrorReason.UNKNOWN_DEVICE]);
  });

  test("is the only one there is", () => {
    const one = mcpToolset([laptop], offers.slice(0, 1));
    expect(routeCall(one, one.byName.get("exec") as MergedTool, { device: "x" })).toEqual({
      deviceId: "dev-1",
      input: { device: "x" },
    });
  });
});
