import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import type { Message, ToolUse, Turn } from "../model.ts";
import { parseToolInput } from "../tool-input.ts";
import { echoedInput, echoedName, toolUseOf, useIds } from "../tool-use.ts";
import { PROVIDER } from "./request.ts";
import type { StreamedMessage } from "./stream.ts";

/** The turn that a streamed message is. Its native content is what the API takes back, whatever the model wrote. */
export function turnOf(incoming: StreamedMessage, names: NameMap, earlier: readonly Message[]): Turn {
  const useId = useIds(earlier);
  const text: string[] = [];
  const toolUses: ToolUse[] = [];
  const content: JsonValue[] = [];
  const blocks = [...incoming.blocks.values()];
  for (const [index, block] of blocks.entries()) {
    const whole = block.pieces.join("");
    switch (block.start.type) {
      case "text":
        text.push(whole);
        if (whole.trim() !== "") content.push({ type: "text", text: whole.toWellFormed() });
        break;
      case "thinking":
        content.push({ type: "thinking", thinking: whole, signature: block.signature });
        break;
      case "tool_use": {
        const cut = incoming.stop.kind === "max_tokens" && index === blocks.length - 1;
        const { id, name } = block.start;
        const use = toolUseOf({ name, json: whole, cut }, useId(id, [incoming.id, index]), names);
        toolUses.push(use);
        content.push({
          type: "tool_use",
          id: use.id,
          name: echoedName(name),
          input: echoedInput(use.input, whole),
        });
        break;
      }
      case "server_tool_use":
        content.push({ ...(block.start as unknown as JsonObject), input: serverInput(whole) });
        break;
      default:
        content.push(block.start as unknown as JsonObject);
    }
  }
  return {
    text: text.join(""),
    toolUses,
    stop: incoming.stop,
    usage: incoming.usage,
    native: { provider: PROVIDER, content: incoming.stop.kind === "paused" ? content : content.filter(isAnswered) },
  };
}

/** What a provider's own tool was used with, such as a search. Nothing of ours runs on it. */
function serverInput(json: string): JsonObject {
  const input = parseToolInput(json);
  return input.kind === "json" ? input.value : {};
}

/** A use of a provider's own tool is taken back with its result, which a turn that was cut off may lack. */
function isAnswered(block: JsonValue, _index: number, content: readonly JsonValue[]): boolean {
  const { type, id } = block as JsonObject;
  return type !== "server_tool_use" || content.some((other) => (other as JsonObject).tool_use_id === id);
}
