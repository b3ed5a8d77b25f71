import { type DescMessage, fromJson, type JsonObject, type MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import type { Validator } from "@bufbuild/protovalidate";
import { type InputProblem, invalidInput } from "../fault/invalid-input.ts";
import { locateJsonError } from "./locate.ts";

/** A message, or what keeps JSON from being one. */
export type ParsedMessage<M> = { ok: true; input: M } | { ok: false; problems: readonly InputProblem[] };

/** A message from JSON, held to its rules. Unknown fields are problems, not dropped. */
export function parseMessage<Desc extends DescMessage>(
  validator: Validator,
  desc: Desc,
  json: JsonObject,
): ParsedMessage<MessageShape<Desc>> {
  let input: MessageShape<Desc>;
  try {
    input = fromJson(desc, json, { ignoreUnknownFields: false });
  } catch (error: unknown) {
    return { ok: false, problems: [jsonProblem(desc, json, error)] };
  }
  const problems = messageProblems(validator, desc, input);
  return problems.length === 0 ? { ok: true, input } : { ok: false, problems };
}

/** As `parseMessage`; throws INVALID_INPUT that names every field that is wrong. */
export function decodeInput<Desc extends DescMessage>(
  validator: Validator,
  desc: Desc,
  json: JsonObject,
): MessageShape<Desc> {
  const parsed = parseMessage(validator, desc, json);
  if (!parsed.ok) throw invalidInput(parsed.problems);
  return parsed.input;
}

/** What breaks a message's rules. A rule that cannot be evaluated is our mistake and throws as it is. */
export function messageProblems<Desc extends DescMessage>(
  validator: Validator,
  desc: Desc,
  message: MessageShape<Desc>,
): InputProblem[] {
  const result = validator.validate(desc, message);
  if (result.kind === "valid") return [];
  if (result.kind === "error") throw result.error;
  return result.violations.map(({ field, message: said, ruleId }) => ({
    field: jsonPath(field),
    rule: ruleId,
    message: said,
  }));
}

/** A path in JSON names: "params.argv[2]", "env["A B"]". */
function jsonPath(path: Path): string {
  let text = "";
  for (const step of path) {
    switch (step.kind) {
      case "list_sub":
        text += `[${step.index}]`;
        break;
      case "map_sub":
        text += `[${typeof step.key === "string" ? JSON.stringify(step.key) : step.key}]`;
        break;
      case "extension":
        text += `[${step.typeName}]`;
        break;
      default:
        text += (text === "" ? "" : ".") + (step.kind === "field" ? step.jsonName : step.name);
    }
  }
  return text;
}

function jsonProblem(desc: DescMessage, json: JsonObject, error: unknown): InputProblem {
  const text = error instanceof Error ? error.message : String(error);
  const field = printable(locateJsonError(desc, [Buffer.from(JSON.stringify(json))]) ?? "");
  if (/key ".*?" is unknown$/s.test(text)) return { field, rule: "unknown_field", message: "there is no such field" };
  return { field, rule: "type", message: printable(text.replace(/^cannot decode .*? from JSON: /s, "")) };
}

/** Text that holds what a caller sent, safe to show and short. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);
}
