import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { PROVIDER_NAME } from "../../../../lib/model-tools/names.ts";
import { invalid, objectAt } from "../api-error.ts";
import { checkMessages } from "./check-messages.ts";
import { checkReferences, SEARCH } from "./search.ts";
import type { MessagesRequest } from "./seen.ts";

/**
 * Refuses what the real Messages API refuses, as far as an agent's loop can get it wrong: missing fields, tool names
 * and schemas, empty content, tool uses without results and results without uses, too many cache marks. Throws ApiError.
 */
export function checkRequest(body: unknown): MessagesRequest {
  const request = objectAt(body, "body");
  if (typeof request.model !== "string" || request.model === "") throw invalid("model: Field required");
  if (request.max_tokens === undefined) throw invalid("max_tokens: Field required");
  if (!Number.isInteger(request.max_tokens) || Number(request.max_tokens) < 1) {
    throw invalid("max_tokens: Input should be an integer greater than or equal to 1");
  }
  checkTools(request.tools);
  checkMessages(request.messages);
  checkReferences(request.messages, request.tools);
  checkCacheMarks(request);
  return request as unknown as MessagesRequest;
}

function checkTools(tools: JsonValue | undefined): void {
  if (tools === undefined) return;
  if (!Array.isArray(tools)) throw invalid("tools: Input should be a valid list");
  const all = tools.map((value, index) => checkTool(objectAt(value, `tools.${index}`), `tools.${index}`));
  if (new Set(all.map(({ name }) => name)).size < all.length) throw invalid("tools: Tool names must be unique.");
  if (all.length > 0 && all.every((tool) => tool.defer_loading === true)) {
    throw invalid("All tools have defer_loading set. At least one tool must be non-deferred.");
  }
  // The API takes tools that nothing can find; an agent does not mean that.
  if (all.some((tool) => tool.defer_loading === true) && !all.some(isSearch)) throw invalid("tools: no tool search");
}

function checkTool(tool: JsonObject, path: string): JsonObject {
  if (typeof tool.name !== "string" || !PROVIDER_NAME.test(tool.name)) {
    throw invalid(`${path}.custom.name: String should match pattern '${PROVIDER_NAME.source}'`);
  }
  if (tool.defer_loading === true && tool.cache_control !== undefined) {
    throw invalid(`${path}: Tools with defer_loading cannot have cache_control.`);
  }
  if (!isSearch(tool))
    checkSchema(objectAt(tool.input_schema, `${path}.custom.input_schema`), `${path}.custom.input_schema`);
  else if (tool.name !== SEARCH || tool.defer_loading === true)
    throw invalid(`${path}.name: Input should be '${SEARCH}'`);
  return tool;
}

function isSearch({ type }: JsonObject): boolean {
  return type === SEARCH;
}

function checkSchema(schema: JsonObject, path: string): void {
  if (schema.type !== "object") throw invalid(`${path}.type: Input should be 'object'`);
  if (["oneOf", "allOf", "anyOf"].some((keyword) => keyword in schema)) {
    throw invalid(`${path}: input_schema does not support oneOf, allOf, or anyOf at the top level`);
  }
}

function checkCacheMarks(request: JsonObject): void {
  const marks = JSON.stringify(request).split('"cache_control":{"type":"ephemeral"').length - 1;
  if (marks > 4) throw invalid(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
}
