import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { deriveFlags } from "../flags/derive.ts";
import { parseFlags } from "../flags/parse.ts";
import { type ToolWords, takenNames } from "./run-options.ts";

/** The largest input, in bytes: what the gate takes. */
const MAX_BYTES = 3 * 1024 * 1024;

/**
 * A call's input: from the tool's flags, or whole from --input. Whole JSON is parsed strictly, so that duplicate keys and
 * the like are named and refused. Throws a UsageError, INVALID_INPUT or INPUT_TOO_LARGE.
 */
export async function readInput(
  { input, rest }: Pick<ToolWords, "rest"> & { input: string | undefined },
  tool: Tool,
  context: Pick<CommandContext, "stdin">,
): Promise<JsonObject> {
  if (input === undefined) {
    const flags = deriveFlags(tool.inputSchema ?? {}, takenNames);
    return parseFlags(rest, flags, (path) => readFileSync(path));
  }
  const [extra] = rest;
  if (extra !== undefined) throw new UsageError(`the input is given by --input already, so ${extra} has no place`);
  const value = parseStrictJson(await readBytes(input, context), { maxBytes: MAX_BYTES });
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "", rule: "object" },
    { message: 'the input must be a JSON object such as {"path": "/tmp"}' },
  );
}

async function readBytes(from: string, { stdin }: Pick<CommandContext, "stdin">): Promise<Uint8Array> {
  if (from === "-") return readStream(stdin);
  if (!from.startsWith("@")) return Buffer.from(from);
  try {
    return await readFile(from.slice(1));
  } catch (error: unknown) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--input: ${from.slice(1)} cannot be read: ${why}`, [], { cause: error });
  }
}

/** Reads no more than one byte too many: the limit is checked, and named, where the JSON is. */
async function readStream(stream: NodeJS.ReadableStream): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MAX_BYTES) break;
  }
  return Buffer.concat(chunks);
}
