import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from "openai/resources/chat/completions";
import type { NameMap } from "../../../../lib/model-tools/names.ts";
import { rootObjectSchema } from "../../../../lib/model-tools/root-schema.ts";
import type { Message, ToolUseResult, TurnRequest } from "../model.ts";
import { nameToEcho } from "../tool-use.ts";
import type { ServerKind } from "./server-kind.ts";
import { strictSchema } from "./strict-schema.ts";

/** The longest name of a tool. */
export const MAX_NAME_LENGTH = 64;

/** What a request is made with besides the conversation. */
export interface RequestSettings {
  model: string;
  kind: ServerKind;
  /** The most tokens of one turn. Default: the kind's. */
  maxTokens: number | undefined;
}

type Conversation = Pick<TurnRequest, "system" | "messages" | "tools">;

/** The body of a streaming request (https://platform.openai.com/docs/api-reference/chat/create). */
export function chatRequest(
  request: Conversation,
  names: NameMap,
  { model, kind, maxTokens = kind.maxTokens.byDefault }: RequestSettings,
): ChatCompletionCreateParamsStreaming {
  return {
    model,
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens === undefined ? {} : { [kind.maxTokens.field]: maxTokens }),
    messages: [
      ...(request.system === "" ? [] : [{ role: "system" as const, content: request.system.toWellFormed() }]),
      ...request.messages.flatMap((message) => messageParams(message, names, kind)),
    ],
    ...(request.tools.length === 0 ? {} : { tools: toolParams(request, names, kind), ...kind.withTools }),
  };
}

function toolParams({ tools }: Conversation, names: NameMap, kind: ServerKind) {
  return tools.map((tool) => {
    const schema = rootObjectSchema(tool.inputSchema);
    const strict = kind.strict ? strictSchema(schema) : undefined;
    return {
      type: "function" as const,
      function: {
        name: names.toProvider(tool.name),
        description: tool.description,
        ...(strict === undefined ? { parameters: schema } : { parameters: strict, strict: true }),
      },
    };
  });
}

function messageParams(message: Message, names: NameMap, kind: ServerKind): ChatCompletionMessageParam[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: message.text.toWellFormed() }];
    case "tool_results":
      return message.results.map(resultParam);
    case "assistant":
      if (message.native.provider === kind.name) {
        return message.native.content as unknown as ChatCompletionMessageParam[];
      }
      return assistantParams(
        message.text,
        message.toolUses.map(({ id, name, input }) => ({
          id,
          name: nameToEcho(name, names, MAX_NAME_LENGTH),
          json: JSON.stringify(input.kind === "json" ? input.value : {}),
        })),
      );
  }
}

/** A turn of the model's as servers take it back; none where it holds neither text nor uses, which they refuse. */
export function assistantParams(
  text: string,
  uses: readonly { id: string; name: string; json: string }[],
): ChatCompletionMessageParam[] {
  if (text === "" && uses.length === 0) return [];
  const tool_calls = uses.map(({ id, name, json }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: json },
  }));
  const content = text === "" ? null : text.toWellFormed();
  return [{ role: "assistant", content, ...(uses.length === 0 ? {} : { tool_calls }) }];
}

/** The API has no mark for an error: `errorText` begins each with "error:". */
function resultParam({ toolUseId, content, isError }: ToolUseResult): ChatCompletionMessageParam {
  const text = content.toWellFormed();
  const marked = isError && !text.startsWith("error:") ? `error: ${text}` : text;
  return { role: "tool", tool_call_id: toolUseId, content: marked };
}
