import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ChatCompletionCreateParams } from "openai/resources/chat/completions";
import { strictSchema } from "../../providers/chat-completions/strict-schema.ts";
import { invalid, objectAt } from "../api-error.ts";
import { checkConversation } from "./check-conversation.ts";
import type { Dialect } from "./dialects.ts";

/** The body of a request, after it was checked. */
export type ChatRequest = ChatCompletionCreateParams;

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Refuses what the real servers refuse, as far as an agent's loop can get it wrong, and what one of them ignores in
 * silence. Throws ApiError.
 */
export function checkRequest(body: unknown, { kind }: Dialect): ChatRequest {
  const request = objectAt(body, "body");
  if (typeof request.model !== "string" || request.model === "") throw invalid("you must provide a model parameter");
  if (request.stream !== true) throw invalid("this server only streams");
  const known = ["model", "stream", "stream_options", "messages", "tools", kind.maxTokens.field];
  const allowed = new Set([...known, ...Object.keys(kind.withTools)]);
  const unknown = Object.keys(request).find((field) => !allowed.has(field));
  if (unknown !== undefined) throw invalid(`Unrecognized request argument supplied: ${unknown}`);
  checkTools(request.tools, kind.strict);
  checkConversation(request.messages);
  return request as unknown as ChatRequest;
}

function checkTools(tools: JsonValue | undefined, strictTaken: boolean): void {
  if (tools === undefined) return;
  if (!Array.isArray(tools) || tools.length === 0) throw invalid("Invalid 'tools': empty array");
  const names = new Set<unknown>();
  for (const [index, value] of tools.entries()) {
    const path = `tools[${index}]`;
    const { type, function: declared } = objectAt(value, path);
    if (type !== "function") throw invalid(`Invalid value: '${path}.type'`);
    const { name, parameters, strict } = objectAt(declared, `${path}.function`);
    if (typeof name !== "string" || !NAME.test(name)) throw invalid(`Invalid '${path}.function.name': ${NAME.source}`);
    if (names.has(name)) throw invalid(`Invalid '${path}.function.name': used twice`);
    names.add(name);
    checkSchema(objectAt(parameters, `${path}.function.parameters`), name, strict, strictTaken);
  }
}

function checkSchema(schema: JsonObject, name: string, strict: JsonValue | undefined, strictTaken: boolean): void {
  if (schema.type !== "object") throw invalid(`Invalid schema for function '${name}': must have type 'object'`);
  if (strict === undefined) return;
  if (!strictTaken) throw invalid(`Unrecognized request argument supplied: strict of '${name}'`);
  if (strict === true && !isDeepStrictEqual(strictSchema(schema), schema))
    throw invalid(`Invalid schema for function '${name}' in strict mode`);
}
