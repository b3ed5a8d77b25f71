import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import type { ValidationResult, Violation } from "@bufbuild/protovalidate";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { locateJsonError } from "../../../lib/serve/json-locate.ts";

/** INVALID_INPUT for JSON that is no such message. `prefix` is where the JSON stands in the whole, such as "params". */
export function decodeFault(input: DescMessage, json: JsonObject, prefix: string, error: unknown): ConnectError {
  const text = error instanceof Error ? error.message : String(error);
  const field = joined(prefix, locateJsonError(input, [Buffer.from(JSON.stringify(json))]) ?? "");
  const message = /key ".*?" is unknown$/s.test(text)
    ? "there is no such field"
    : text.replace(/^cannot decode .*? from JSON: /s, "");
  return invalid([{ field: printable(field), message: printable(message) }]);
}

/** INVALID_INPUT for a message that breaks its rules, with every field that does. */
export function violationFault(prefix: string, result: Exclude<ValidationResult, { kind: "valid" }>): ConnectError {
  if (result.kind === "error") return invalid([{ field: prefix, message: result.error.message }]);
  return invalid(
    result.violations.map((violation) => ({ field: joined(prefix, pathOf(violation)), message: violation.message })),
  );
}

/** The violation's path, with the names that a caller of JSON uses. */
function pathOf(violation: Violation): string {
  let path = "";
  for (const part of violation.field) {
    if (part.kind === "list_sub") path += `[${part.index}]`;
    else if (part.kind === "map_sub") path += `[${JSON.stringify(String(part.key))}]`;
    else path += `${path === "" ? "" : "."}${part.kind === "field" ? part.jsonName : part.name}`;
  }
  return path;
}

function joined(prefix: string, path: string): string {
  if (prefix === "" || path === "") return prefix + path;
  return path.startsWith("[") ? prefix + path : `${prefix}.${path}`;
}

function invalid(violations: { field: string; message: string }[]): ConnectError {
  const first = violations[0] ?? { field: "", message: "not valid" };
  const message = violations.map((one) => (one.field === "" ? one.message : `${one.field}: ${one.message}`)).join("; ");
  return fault(ErrorReason.INVALID_INPUT, { field: first.field, rule: first.message }, { violations, message });
}

/** Text that holds what a caller sent, safe to show and short. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);
}
