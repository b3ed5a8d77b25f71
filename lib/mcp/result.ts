import type { JsonObject } from "@bufbuild/protobuf";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { endFacts, queuedFacts, stateWord } from "../model-tools/call-facts.ts";
import { type ErrorFacts, errorText, thrownFacts } from "../model-tools/error-text.ts";
import { shortenJson } from "../model-tools/shorten.ts";
import { blocksOf, type ContentBlock } from "./content.ts";
import type { McpCall } from "./gate.ts";
import { CALL_CANCEL, CALL_RESULT } from "./own-tools.ts";

/** The result of `tools/call`. */
export interface ToolCallResult {
  content: ContentBlock[];
  structuredContent?: JsonObject;
  isError?: true;
  _meta?: { [CALL_ID_META]: string };
  [key: string]: unknown;
}

/** Where a result names its call. */
const CALL_ID_META = "reeve/call_id";

/** The most characters of an output's text. `structuredContent` holds all of it. */
export const MAX_TEXT = 60_000;

/** Of an output that is not as its device sent it. */
export const SANITIZED_NOTE = "Control characters or what looked like secrets were taken out of the output.";

/** The states of a call that has ended. A state of a newer registry is not an end: none is guessed. */
const ENDS: ReadonlySet<CallState> = new Set([
  CallState.SUCCEEDED,
  CallState.FAILED,
  CallState.TIMED_OUT,
  CallState.CANCELED,
  CallState.DENIED,
  CallState.EXPIRED,
  CallState.UNKNOWN,
]);

/** Whether a call has not ended. */
export function isOpen({ status }: Pick<McpCall, "status">): boolean {
  return !ENDS.has(status.state);
}

/** The page where a person decides about an approval; undefined where there is none. */
export type ApprovalUrl = ((approvalId: string) => string) | undefined;

/** What a client reads about a call, as it stands. Only one that succeeded is no error: others have no output to show. */
export function callResult(call: McpCall, approvalUrl?: ApprovalUrl): ToolCallResult {
  const { state, output = {}, outputSanitized } = call.status;
  const meta = { _meta: { [CALL_ID_META]: call.id } };
  if (state !== CallState.SUCCEEDED) return { ...textResult(callText(call, approvalUrl)), ...meta };
  const { content, structuredContent } = contentOf(output);
  return { content: [...content, ...(outputSanitized ? [text(SANITIZED_NOTE)] : [])], structuredContent, ...meta };
}

function contentOf(output: JsonObject): Required<Pick<ToolCallResult, "content" | "structuredContent">> {
  const blocks = blocksOf(output);
  const length = blocks?.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0) ?? 0;
  if (blocks !== undefined && length <= MAX_TEXT) {
    const { content: _content, ...rest } = output;
    return { content: blocks, structuredContent: rest };
  }
  // The same as text: a client that ignores structured content shows nothing else. JSON, whose strings nothing can end.
  return { content: [text(shortenJson(output, MAX_TEXT))], structuredContent: output };
}

/** What a client reads where there is no call: a fault's own message, and nothing of other errors. */
export function thrownResult(thrown: unknown): ToolCallResult {
  return errorResult(thrownFacts(thrown));
}

/** A result that is an error, in words that a model can act on. */
export function errorResult(facts: ErrorFacts): ToolCallResult {
  return textResult(errorText(facts, "the registry"));
}

function textResult(message: string): ToolCallResult {
  return { content: [text(message)], isError: true };
}

function text(message: string): ContentBlock {
  return { type: "text", text: message };
}

/** What a client reads about a call that has not succeeded. */
export function callText(call: McpCall, approvalUrl: ApprovalUrl): string {
  const { state } = call.status;
  if (state === CallState.HELD) return heldText(call, approvalUrl);
  if (state === CallState.QUEUED) return errorText(queuedFacts(call), "the registry");
  if (isOpen(call)) return openText(call);
  return errorText(endFacts(call), `device ${JSON.stringify(call.spec.deviceName)}`);
}

/** What a held call waits for, where a person decides, and how its end is had: by far the most that a client can carry. */
function heldText({ id, status }: McpCall, approvalUrl: ApprovalUrl): string {
  const approval = status.approval?.id ?? "";
  const rules = (status.decision?.ruleIds ?? []).join(", ");
  return [
    `held: a person has to decide about approval ${approval} first. Nothing has run yet.`,
    ...(rules === "" ? [] : [`held by: ${rules}`]),
    `call_id: ${id}`,
    `approval_id: ${approval}`,
    `The person decides ${placesOf(approval, approvalUrl)}: report that to the user.`,
    `Once it is approved the call runs by itself. Do not call the tool again for it: ${CALL_RESULT} with this call_id ` +
      `returns its end, and ${CALL_CANCEL} withdraws it.`,
  ].join("\n");
}

function placesOf(approval: string, approvalUrl: ApprovalUrl): string {
  const places = `with \`reeve approval approve ${approval}\`, or in \`reeve approval watch\``;
  return approvalUrl === undefined ? places : `at ${approvalUrl(approval)}, ${places}`;
}

function openText({ id, status }: McpCall): string {
  return [
    `not ended yet: the call is ${stateWord(status.state)}. Its device runs it, or is offline and will report how it ended.`,
    `call_id: ${id}`,
    `Do not call the tool again for it: ${CALL_RESULT} with this call_id returns its end, and ${CALL_CANCEL} ends it.`,
  ].join("\n");
}
