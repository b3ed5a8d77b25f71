import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../../lib/fault/fault.ts";
import { cleanOutput } from "../../../../../lib/sanitize/sanitize.ts";
import { cutText } from "../../../../../lib/tool/cut.ts";
import { schemaAt } from "../../../../../lib/tool/json-schema.ts";

/** How much of all texts of a result is kept, in characters. */
const MAX_TEXT = 256 * 1024;

/** How much of a server's own words goes into an error, in characters. */
const MAX_MESSAGE = 2048;

/**
 * A server's result as the call's output: its blocks, with the middle of a long text left out. Fault: TOOL_FAILED{service,code}
 * with the server's own words, sanitized, where it says that the tool failed. Pure.
 */
export function outputOf(service: string, result: JsonObject): JsonObject {
  const listed = Array.isArray(result.content) ? result.content : [];
  const blocks = listed.map(schemaAt).filter((one) => one !== undefined);
  if (result.isError === true) throw serverFailed(service, "tool_error", textOf(blocks));
  let left = MAX_TEXT;
  let truncated = false;
  const content = blocks.map((block): JsonValue => {
    const { type, text } = block;
    if (type !== "text" || typeof text !== "string") return block;
    const { head, tail, note } = cutText(text, left);
    left = Math.max(0, left - text.length);
    if (note === "") return block;
    truncated = true;
    return { ...block, text: `${head} ${note} ${tail}` };
  });
  const structured = schemaAt(result.structuredContent);
  return { content, ...(structured === undefined ? {} : { structuredContent: structured }), truncated };
}

/** The fault of a server that answered with an error. */
export function serverFailed(service: string, code: string, words: string): Error {
  const said = cleanOutput(words.slice(0, 4 * MAX_MESSAGE))
    .text.trim()
    .slice(0, MAX_MESSAGE);
  const message = said === "" ? `the MCP server ${service} answered with an error` : said;
  return fault(ErrorReason.TOOL_FAILED, { service, code }, { message });
}

function textOf(blocks: readonly JsonObject[]): string {
  return blocks.flatMap(({ text }) => (typeof text === "string" ? text : [])).join("\n");
}
