import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import type { Message, ToolUse, Turn } from "../model.ts";
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
