import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { CallToolResult } from "@modelcontextprotocol/server";

/** A block of a result: text, a picture, a sound, or a resource. */
export type ContentBlock = CallToolResult["content"][number];

/** The fields of each block that a client takes: those that it must have, and others. All are text. */
const FIELDS: Readonly<Record<string, { required: readonly string[]; more: readonly string[] }>> = {
  text: { required: ["text"], more: [] },
  image: { required: ["data", "mimeType"], more: [] },
  audio: { required: ["data", "mimeType"], more: [] },
  resource_link: { required: ["uri", "name"], more: ["title", "description", "mimeType"] },
};

/** The fields of what an embedded resource holds. */
const RESOURCE = { required: ["uri"], more: ["mimeType", "text", "blob"] };

/** What the output of a tool of an MCP server has beside its blocks. */
const BESIDE = new Set(["content", "structuredContent", "truncated"]);

/**
 * The blocks of an output that is a result of an MCP server on a device, so that a picture reaches a client as one. Undefined
 * for any other output, and where a block has another form than every client takes. Only known fields are kept. Pure.
 */
export function blocksOf(output: JsonObject): ContentBlock[] | undefined {
  const { content } = output;
  if (!Array.isArray(content) || typeof output.truncated !== "boolean") return undefined;
  if (Object.keys(output).some((key) => !BESIDE.has(key))) return undefined;
  const blocks = content.map(blockOf);
  return blocks.some((block) => block === undefined) ? undefined : (blocks as unknown as ContentBlock[]);
}

function blockOf(value: JsonValue): JsonObject | undefined {
  if (!isObject(value) || typeof value.type !== "string") return undefined;
  const { type } = value;
  if (type === "resource") {
    const resource = isObject(value.resource) ? picked(value.resource, RESOURCE) : undefined;
    const isWhole = resource !== undefined && (resource.text === undefined) !== (resource.blob === undefined);
    return isWhole ? { type, resource } : undefined;
  }
  const fields = Object.hasOwn(FIELDS, type) ? picked(value, FIELDS[type]) : undefined;
  return fields && { type, ...fields };
}

function picked(
  value: JsonObject,
  fields: { required: readonly string[]; more: readonly string[] } | undefined,
): JsonObject | undefined {
  if (fields?.required.some((name) => typeof value[name] !== "string") ?? true) return undefined;
  const names = [...(fields?.required ?? []), ...(fields?.more ?? [])];
  return Object.fromEntries(names.flatMap((name) => (typeof value[name] === "string" ? [[name, value[name]]] : [])));
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
