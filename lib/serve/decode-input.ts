import { type DescMessage, fromJson, type JsonObject, type MessageShape } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { assertValid, joinPath } from "./interceptors/validate.ts";
import { locateJsonError } from "./json-locate.ts";

/**
 * A message from JSON, held to its rules. INVALID_INPUT names every field that is wrong, an unknown one too.
 *
 * @param prefix where the JSON stands in what the caller sent, such as "params". Default: it is the whole.
 */
export function decodeInput<Desc extends DescMessage>(
  validator: Validator,
  input: Desc,
  json: JsonObject,
  prefix = "",
): MessageShape<Desc> {
  const message = decode(input, json, prefix);
  assertValid(validator, input, message, prefix);
  return message;
}

function decode<Desc extends DescMessage>(input: Desc, json: JsonObject, prefix: string): MessageShape<Desc> {
  try {
    return fromJson(input, json, { ignoreUnknownFields: false });
  } catch (error: unknown) {
    throw decodeFault(input, json, prefix, error);
  }
}

function decodeFault(input: DescMessage, json: JsonObject, prefix: string, error: unknown): ConnectError {
  const text = error instanceof Error ? error.message : String(error);
  const field = printable(joinPath(prefix, locateJsonError(input, [Buffer.from(JSON.stringify(json))]) ?? ""));
  const isUnknown = /key ".*?" is unknown$/s.test(text);
  const said = isUnknown ? "there is no such field" : printable(text.replace(/^cannot decode .*? from JSON: /s, ""));
  const message = field === "" ? said : `${field}: ${said}`;
  const rule = isUnknown ? "unknown_field" : "type";
  return fault(ErrorReason.INVALID_INPUT, { field, rule }, { violations: [{ field, message: said }], message });
}

/** Text that holds what a caller sent, safe to show and short. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);
}
