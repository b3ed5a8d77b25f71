import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { canonicalJson, sha256Hex } from "../sign/canonical.ts";
import { type JsonSchema, jsonDepth, schemaAt } from "../tool/json-schema.ts";
import { isToolName } from "../toolschema/names.ts";
import type { ServerDeclaration } from "./server-declaration.ts";

/** A tool of an MCP server, as its plugin can offer it. */
export interface ServerTool {
  /** Its name in the plugin. */
  name: string;
  /** Its name at the server. */
  remoteName: string;
  server: ServerDeclaration;
  description: string;
  inputSchema: JsonSchema;
  /** The same as the server listed it. */
  listedSchema: JsonSchema;
  /** Whether the plugin's own declaration says that it only reads. */
  readOnly: boolean;
  /** What the server claims of it, for people. Nothing is decided by it. */
  claims: readonly string[];
  /** SHA-256 in hex over all that the server says of it (RFC 8785), so that a change of any of it makes it another tool. */
  digest: string;
}

/** What came of a server's list. */
export interface ServerTools {
  tools: readonly ServerTool[];
  /** Tools that cannot be offered, by a name for people. */
  unusable: readonly { name: string; why: string }[];
}

/** What a server says of one tool, in characters of JSON. */
const MAX_TOOL = 128 * 1024;

/** How deep it may be nested. */
const MAX_DEPTH = 40;

/** What a server lists, as tools. It is another party's: whatever is not as expected is left out, with why. Pure. */
export function readServerTools(server: ServerDeclaration, listed: readonly JsonValue[]): ServerTools {
  const tools: ServerTool[] = [];
  const unusable: { name: string; why: string }[] = [];
  for (const one of listed) {
    const read = readOne(server, one);
    if (typeof read === "string") unusable.push({ name: nameFor(schemaAt(one)?.name), why: read });
    else if (tools.some(({ name }) => name === read.name))
      unusable.push({ name: nameFor(read.remoteName), why: `another of its tools is called ${read.name} here` });
    else tools.push(read);
  }
  return { tools, unusable };
}

/** The tool, or what is wrong with it. */
function readOne(server: ServerDeclaration, value: JsonValue): ServerTool | string {
  const tool = schemaAt(value);
  if (tool === undefined || jsonDepth(value) > MAX_DEPTH) return "it is described in no form that is known";
  const { name: remoteName, description, inputSchema, annotations, execution } = tool;
  if (typeof remoteName !== "string") return "it has no name";
  const name = localName(remoteName);
  if (!isToolName(name)) return "its name cannot be one here";
  const schema = schemaAt(inputSchema);
  if (schema === undefined) return "it has no input schema";
  if (schemaAt(execution)?.taskSupport === "required") return "it can only be called as a task, which is not supported";
  // Its icons and whatever else stands in _meta may change at any time, and nothing shows them.
  const { _meta, icons: _icons, ...said } = tool;
  const text = canonicalJson(said);
  if (text.length > MAX_TOOL) return `its description is longer than ${MAX_TOOL} characters`;
  return {
    name,
    remoteName,
    server,
    description: typeof description === "string" ? description : "",
    inputSchema: plainSchema(schema),
    listedSchema: schema,
    readOnly: server.readOnly.includes(remoteName),
    claims: claimsOf(schemaAt(annotations) ?? {}),
    digest: sha256Hex(text),
  };
}

/** A name in the form that names have here: `getTree` and `get-tree` are `get_tree`. Not every name has such a form. */
function localName(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[-/ ]/g, "_");
}

/** A name of another party, for a person. */
function nameFor(name: unknown): string {
  return typeof name === "string" ? name.replace(/[^\x20-\x7e]/g, "?").slice(0, 64) : "?";
}

/** Without marks for other programs, which say nothing of what is valid (such as `x-mcp-header`). */
function plainSchema(schema: JsonSchema): JsonSchema {
  const plain = (value: JsonValue, isSchema: boolean): JsonValue => {
    if (Array.isArray(value)) return value.map((one) => plain(one, isSchema));
    const object = schemaAt(value);
    if (object === undefined) return value;
    const kept = Object.entries(object).filter(([key]) => !isSchema || !/^x-(?!reeve-)/.test(key));
    return Object.fromEntries(kept.map(([key, inner]) => [key, plain(inner, !isSchema || !HOLDS_NAMES.has(key))]));
  };
  return plain(schema, true) as JsonSchema;
}

/** Keywords whose members are named by the author, and no keywords. */
const HOLDS_NAMES = new Set(["properties", "$defs", "enum", "const", "default", "examples"]);

const CLAIMS: readonly (readonly [hint: string, value: boolean, claim: string])[] = [
  ["readOnlyHint", true, "only reads"],
  ["destructiveHint", true, "may destroy"],
  ["destructiveHint", false, "destroys nothing"],
  ["idempotentHint", true, "changes nothing when repeated"],
  ["openWorldHint", false, "stays on the machine"],
];

function claimsOf(annotations: JsonObject): string[] {
  return CLAIMS.flatMap(([hint, value, claim]) => (annotations[hint] === value ? claim : []));
}
