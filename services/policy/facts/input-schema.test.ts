import { expect, it } from "vitest";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { inputSchemaOf } from "./decision-request.ts";

const versionOf = (name: string, text: string, schemaDigest = sha256Hex(text)) => ({
  name,
  schemaDigest,
  inputSchema: new TextEncoder().encode(text),
});
const of = (tool: Parameters<typeof inputSchemaOf>[0]) => inputSchemaOf(tool, toolByName);

it("is what the question brings, or that of the built-in tool in the same version, or not known", () => {
  const exec = toolByName("exec");
  const schema = { type: "object" };
  expect(of(versionOf("vault:open", canonicalJson(schema)))).toEqual(schema);
  expect(of(versionOf("exec", "", exec?.schemaDigest))).toEqual(exec?.inputSchema);
  expect(of(versionOf("exec", "", "another"))).toBeUndefined();
  expect(of(versionOf("vault:open", ""))).toBeUndefined();
});

it.each([
  ["with another digest", versionOf("vault:open", "{}", sha256Hex("[]"))],
  ["that is no JSON", versionOf("vault:open", "{")],
  ["that is no object", versionOf("vault:open", "[]")],
  ["over 64 KiB, whichever way it comes", versionOf("vault:open", `{"a":"${"x".repeat(65_536)}"}`)],
])("is refused %s", (_, tool) => {
  expect(() => of(tool)).toThrow("tool.inputSchema");
});
