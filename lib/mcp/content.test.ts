import { expect, test } from "vitest";
import { blocksOf } from "./content.ts";

const image = { type: "image", data: "AA==", mimeType: "image/png" };
const link = { type: "resource_link", uri: "file:///a", name: "a" };

test("a result of an MCP server keeps its blocks, with their known fields only", () => {
  const embedded = { type: "resource", resource: { uri: "a:b", text: "x" } };
  const more = { ...image, annotations: { priority: 1 }, _meta: { a: 1 } };
  const output = { content: [{ type: "text", text: "t" }, more, link, embedded], truncated: false };
  expect(blocksOf(output)).toEqual([{ type: "text", text: "t" }, image, link, embedded]);
});

test.each([
  { stdout: "x", truncated: false },
  { content: [image] },
  { content: "x", truncated: false },
  { content: [image], truncated: false, more: 1 },
  { content: [{ type: "image", data: 7, mimeType: "image/png" }], truncated: false },
  { content: [{ type: "constructor" }], truncated: false },
  { content: [{ type: "resource", resource: { uri: "a:b" } }], truncated: false },
  { content: ["text"], truncated: false },
])("any other output has none: %j", (output) => {
  expect(blocksOf(output)).toBeUndefined();
});
