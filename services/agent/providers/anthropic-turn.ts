import { createHash } from "node:crypto";
import type Anthropic from "@anthropic-ai/sdk";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { NameMap } from "../../../lib/model-tools/names.ts";
import { echoedName, PROVIDER } from "./anthropic-request.ts";
import type { StreamedMessage } from "./anthropic-stream.ts";
import type { ToolInput, ToolUse, Turn } from "./model.ts";
import { parseToolInput } from "./tool-input.ts";

/** The turn that a streamed message is. Its native content is what the API takes back, whatever the model wrote. */
export function turnOf(incoming: StreamedMessage, names: NameMap): Turn {
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
        const use = toolUseOf(block.start, whole, cut, useId(incoming, index, block.start.id, toolUses), names);
        toolUses.push(use);
        content.push({
          type: "tool_use",
          id: use.id,
          name: echoedName(block.start.name),
          input: echoedInput(use.input, whole),
        });
        break;
      }
      default:
        content.push(block.start as unknown as JsonObject);
    }
  }
  return {
    text: text.join(""),
    toolUses,
    stop: incoming.stop,
    usage: incoming.usage,
    native: { provider: PROVIDER, content },
  };
}

function toolUseOf(start: Anthropic.ToolUseBlock, json: string, cut: boolean, id: string, names: NameMap): ToolUse {
  const input = parseToolInput(json);
  const name = names.toTool(start.name) ?? start.name;
  if (!cut || (input.kind === "json" && json !== "")) return { id, name, input };
  return {
    id,
    name,
    input: { kind: "malformed", problem: "the input was cut off by the limit of tokens for one turn" },
  };
}

const USE_ID = /^[a-zA-Z0-9_-]{1,128}$/;

/** The model's id of a use, or one made from the message's id where that is unusable or taken. */
function useId(incoming: StreamedMessage, index: number, id: string, earlier: readonly ToolUse[]): string {
  if (USE_ID.test(id) && earlier.every((use) => use.id !== id)) return id;
  const digest = createHash("sha256")
    .update(JSON.stringify([incoming.id, index, id]))
    .digest("hex");
  return `toolu_${digest.slice(0, 24)}`;
}

/** Input as it can be given back to the API, which takes objects only. */
function echoedInput(input: ToolInput, json: string): JsonObject {
  return input.kind === "json" ? input.value : { invalid_json: json.slice(0, 2000).toWellFormed() };
}
