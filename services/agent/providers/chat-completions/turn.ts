import type { JsonValue } from "@bufbuild/protobuf";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import type { Message, Turn } from "../model.ts";
import { echoedInput, echoedName, toolUseOf, useIds } from "../tool-use.ts";
import { assistantParams, MAX_NAME_LENGTH } from "./request.ts";
import type { ServerKind } from "./server-kind.ts";
import type { StreamedTurn } from "./stream.ts";

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/**
 * The turn that was streamed. Its native content is what servers take back: some parse every input of the conversation,
 * so one that is no JSON goes back as an object that holds it. Reasoning is not kept: these servers do not ask for it.
 */
export function turnOf(
  { id, pieces, uses, usage = NO_USAGE, stop }: StreamedTurn,
  names: NameMap,
  earlier: readonly Message[],
  kind: ServerKind,
): Turn {
  const text = pieces.join("");
  const useId = useIds(earlier);
  const read = uses.map((use, index) => {
    const json = use.pieces.join("");
    const cut = stop.kind === "max_tokens" && index === uses.length - 1;
    return { json, use: toolUseOf({ name: use.name, json, cut }, useId(use.id, [id, index, use.name, json]), names) };
  });
  const echo = read.map(({ json, use }, index) => ({
    id: use.id,
    name: echoedName(uses[index]?.name ?? "", MAX_NAME_LENGTH),
    json: JSON.stringify(echoedInput(use.input, json)),
  }));
  return {
    text,
    toolUses: read.map(({ use }) => use),
    stop,
    usage,
    native: { provider: kind.name, content: assistantParams(text, echo) as unknown as JsonValue[] },
  };
}
