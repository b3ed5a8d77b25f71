import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { takesCommands } from "../../../lib/command/hidden-commands.ts";
import { namesOf, textOf, wordsOf } from "../../../lib/tool/command-problems.ts";
import { type CommandFields, commandsIn } from "../../../lib/tool/commands.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";

/** The most bytes of canonical arguments that may wait for a human: a person has to be able to read them. */
const MAX_HELD_BYTES = 64 * 1024;

/** Why a call cannot wait for a human. */
export interface NotHoldable {
  reason: ErrorReason;
  /** Names the field and the limit or rule, as in reeve.common.v1.ErrorDetail. */
  metadata: Record<string, string>;
  /** Safe to show. */
  message: string;
}

/**
 * Why a call that the rules hold cannot be shown to a human, and is therefore denied; undefined where it can. What is too
 * long to read, and commands in a field that is a secret and never shown, would be approved unseen. Pure.
 */
export function notHoldable({ request, inputSchema = {}, args }: ValidatedRequest): NotHoldable | undefined {
  if (request.arguments.length > MAX_HELD_BYTES) return tooLong(args);
  return commandsIn(inputSchema, args)
    .map(hiddenCommands)
    .find((found) => found !== undefined);
}

function tooLong(args: JsonObject): NotHoldable {
  const field = longestField(args);
  const limit = String(MAX_HELD_BYTES);
  const message = `${field}: a call that waits for a person may have at most ${limit} bytes of arguments, which they have to read; make it shorter, or split it`;
  return { reason: ErrorReason.INPUT_TOO_LARGE, metadata: { field, limit }, message };
}

/** The path of the longest value; "params" where many small ones make up the length. */
function longestField(args: JsonObject): string {
  let longest = { field: "params", size: MAX_HELD_BYTES / 4 };
  const look = (field: string, value: JsonValue): void => {
    if (typeof value === "string") {
      if (value.length > longest.size) longest = { field, size: value.length };
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) look(`${field}[${index}]`, item);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) look(`${field}.${key}`, inner);
    }
  };
  look("params", args);
  return longest.field;
}

function hiddenCommands({ argv, foreign_argv: foreign, stdin, environment }: CommandFields): NotHoldable | undefined {
  const words = wordsOf((argv ?? foreign)?.value);
  const hidden = takesCommands(words, { hasInput: textOf(stdin) !== "", variables: namesOf(environment?.value) });
  if (hidden === undefined) return undefined;
  const field =
    hidden.kind === "input" ? `params.${stdin?.path ?? ""}` : `params.${environment?.path ?? ""}.${hidden.name}`;
  const remedy =
    hidden.kind === "input"
      ? "write the commands into argv, or into a file"
      : "leave the variable out, or write the command into argv";
  const message = `${field}: ${hidden.program} runs what is in it, and no approver can see it, since it is a secret; ${remedy}`;
  return { reason: ErrorReason.INVALID_INPUT, metadata: { field, rule: "hidden_commands" }, message };
}
