import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type NameMap, providerName } from "../../../lib/model-tools/names.ts";
import type { Message, ToolInput, ToolUse } from "./model.ts";
import { parseToolInput } from "./tool-input.ts";

/** A use of a tool as a model wrote it. */
export interface WrittenUse {
  /** The provider's name of the tool. */
  name: string;
  /** The input, as text. */
  json: string;
  /** The turn's tokens ran out while this was written. */
  cut: boolean;
}

/** The use that a model wrote. Input that was cut off is malformed; a whole JSON object cannot have been cut. */
export function toolUseOf({ name, json, cut }: WrittenUse, id: string, names: NameMap): ToolUse {
  const input = parseToolInput(json);
  const use = { id, name: names.toTool(name) ?? name };
  if (!cut || (input.kind === "json" && json.trim() !== "")) return { ...use, input };
  return {
    ...use,
    input: { kind: "malformed", problem: "the input was cut off by the limit of tokens for one turn" },
  };
}

/** Input in a form that providers take back: they take objects only. */
export function echoedInput(input: ToolInput, json: string): JsonObject {
  return input.kind === "json" ? input.value : { invalid_json: json.slice(0, 2000).toWellFormed() };
}

/** A made-up tool name in a form that providers take back. */
export function echoedName(name: string, maxLength = 128): string {
  return providerName(name).slice(0, maxLength) || "unnamed";
}

/** The provider's name of a tool that was used earlier, also where it is not among the tools or was made up. */
export function nameToEcho(tool: string, names: NameMap, maxLength?: number): string {
  try {
    return names.toProvider(tool);
  } catch {
    return echoedName(tool, maxLength);
  }
}

/** What every provider takes back: OpenAI's ids have at most 40 characters. */
const USE_ID = /^[a-zA-Z0-9_-]{1,40}$/;

/**
 * Gives uses ids that are unique in the conversation: the model's own, or one made from `about` where that is unusable or
 * taken. Some servers count from 0 in every turn, and a call's id is made from its use's: one that came twice would be
 * answered with the earlier call's result.
 *
 * @param messages the conversation before the turn.
 */
export function useIds(messages: readonly Message[]): (id: string, about: JsonValue) => string {
  const taken = new Set(
    messages.flatMap((message) => (message.role === "assistant" ? message.toolUses.map((use) => use.id) : [])),
  );
  return (id, about) => {
    const unique = USE_ID.test(id) && !taken.has(id) ? id : madeId([id, about, taken.size]);
    taken.add(unique);
    return unique;
  };
}

function madeId(about: JsonValue): string {
  return `call_${createHash("sha256").update(JSON.stringify(about)).digest("hex").slice(0, 24)}`;
}
