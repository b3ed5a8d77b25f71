import type { JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { serverTools } from "./found-tools.ts";
import { parseManifest } from "./manifest.ts";
import { readServerTools } from "./server-tools.ts";

const parsed = parseManifest(
  Buffer.from(JSON.stringify({ name: "demo", mcp_servers: { one: { command: "x" }, two: { command: "y" } } })),
);
if (!parsed.ok) throw new Error("the manifest is wrong");
const { manifest } = parsed;
const [one] = manifest.servers;
if (one === undefined) throw new Error("no server");

const TOOL = { name: "getTree-now", description: "d", inputSchema: { type: "object" } };
const read = (...listed: JsonObject[]) => readServerTools(one, listed);
const digestOf = (tool: JsonObject) => read(tool).tools[0]?.digest;

test("a tool has a name of the form that names have here, and keeps its own for the server", () => {
  expect(read(TOOL).tools).toMatchObject([{ name: "get_tree_now", remoteName: "getTree-now" }]);
  expect(read(TOOL, { ...TOOL, name: "get_tree_now" }).unusable).toEqual([
    { name: "get_tree_now", why: "another of its tools is called get_tree_now here" },
  ]);
});

test.each<readonly [change: JsonObject]>([
  [{ description: "e" }],
  [{ inputSchema: { type: "object", properties: { a: {} } } }],
  [{ outputSchema: { type: "object" } }],
  [{ annotations: { readOnlyHint: true } }],
  [{ title: "t" }],
])("a tool is another one with %j", (change) => {
  expect(digestOf({ ...TOOL, ...change })).not.toBe(digestOf(TOOL));
});

test("a tool is the same in another order, and with other icons", () => {
  const { name, description, inputSchema } = TOOL;
  expect(digestOf({ icons: [{ src: "x" }], inputSchema, _meta: { a: 1 }, description, name })).toBe(digestOf(TOOL));
});

test.each<readonly [tool: JsonObject, why: RegExp]>([
  [{}, /no name/],
  [{ ...TOOL, name: "9" }, /name cannot be one here/],
  [{ ...TOOL, name: "a\u001b[31m" }, /name cannot be one here/],
  [{ name: "a" }, /no input schema/],
  [{ ...TOOL, execution: { taskSupport: "required" } }, /only be called as a task/],
  [{ ...TOOL, description: "x".repeat(200_000) }, /longer than/],
  [{ ...TOOL, inputSchema: deep(100) }, /no form that is known/],
])("a tool that cannot be offered is left out, with why", (tool, why) => {
  const { tools, unusable } = read(tool);
  expect(tools).toEqual([]);
  expect(unusable[0]?.why).toMatch(why);
  expect(unusable[0]?.name).toMatch(/^[\x20-\x7e]+$/);
});

test("marks for other programs are not taken into the schema, and fields of that name are", () => {
  const inputSchema = {
    type: "object",
    properties: { "x-field": { type: "string", "x-mcp-header": "A", "x-reeve-command": "shell" } },
  };
  const [tool] = read({ ...TOOL, inputSchema }).tools;
  expect(tool?.inputSchema).toEqual({
    type: "object",
    properties: { "x-field": { type: "string", "x-reeve-command": "shell" } },
  });
  expect(tool?.listedSchema).toEqual(inputSchema);
});

test("two servers of a plugin have no tool of one name, and not more tools than a device announces", () => {
  const many = Array.from({ length: 70 }, (_, at) => ({ ...TOOL, name: `t${at}` }));
  const { tools, unusable } = serverTools(
    manifest,
    new Map([
      ["one", [TOOL]],
      ["two", [TOOL, ...many]],
    ]),
  );
  expect(tools).toHaveLength(64);
  expect(unusable[0]?.why).toContain("another tool of the plugin has this name");
  expect(unusable.at(-1)?.why).toContain("64 tools already");
});

function deep(depth: number): JsonObject {
  return depth === 0 ? {} : { items: deep(depth - 1) };
}
