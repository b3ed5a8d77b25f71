import { ConnectError } from "@connectrpc/connect";
import { parseStrictJson } from "../../../lib/json/strict-json.ts";
import type { ToolInput } from "./model.ts";

/** Room for the largest input of a built-in tool, 1 MiB of text, with its escapes. */
const LIMITS = { maxBytes: 4 * 1024 * 1024, maxDepth: 32, maxKeys: 10_000 };

/**
 * Reads what a model wrote as a tool's input. Never mended: completing a cut-off command would run another command.
 * Empty text is an empty object, which is how providers stream a use without arguments.
 */
export function parseToolInput(text: string): ToolInput {
  if (text.trim() === "") return { kind: "json", value: {} };
  try {
    const value = parseStrictJson(Buffer.from(text), LIMITS);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { kind: "json", value };
    return { kind: "malformed", problem: "the input is not a JSON object" };
  } catch (error: unknown) {
    return { kind: "malformed", problem: ConnectError.from(error).rawMessage };
  }
}
