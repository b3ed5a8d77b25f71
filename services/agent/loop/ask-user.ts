import type { JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { errorText } from "../../../lib/model-tools/error-text.ts";
import type { ToolResult } from "../toolbox/toolbox.ts";
import type { ToolDefinition } from "../toolset/toolset.ts";

/** The tool with which a model asks a person. It reaches no device and passes no gate. */
export const ASK_USER: Readonly<ToolDefinition> = Object.freeze({
  name: "ask_user",
  description:
    "Ask the person whom you work for a question, and wait for the answer, which may take days. Ask only for what " +
    "you cannot find out or decide yourself. An answer approves no call: what needs an approval is held in any case.",
  inputSchema: {
    type: "object",
    properties: { question: { type: "string", minLength: 1, maxLength: 4000 } },
    required: ["question"],
    additionalProperties: false,
  },
  capability: "",
  requiresApproval: false,
});

/** The name under which a person's answer comes. */
export function questionAnswer(questionId: string): string {
  return `question/${questionId}`;
}

/** The question in what a model wrote, if it is one. */
export function questionOf(input: JsonValue | undefined): string | undefined {
  const question = typeof input === "object" && input !== null && !Array.isArray(input) ? input.question : undefined;
  return typeof question === "string" && question.trim() !== "" ? question.slice(0, 4000) : undefined;
}

/** What the model reads of a person's answer; undefined: none came in time. */
export function answerResult(answer: JsonValue | undefined): ToolResult {
  if (typeof answer === "string") return { content: `The user answered: ${answer}`, isError: false };
  const facts = { reason: ErrorReason.TIMED_OUT, message: "the user has not answered in time" };
  return { content: errorText(facts, "the run"), isError: true };
}
