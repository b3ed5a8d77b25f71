import { type DescMessage, fromJson, type JsonObject, type MessageShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { decodeFault, violationFault } from "../calls/violations.ts";

const validator = createValidator();

/** A request message from a JSON body, held to its rules. INVALID_INPUT names every field that is wrong. */
export function validRequest<Desc extends DescMessage>(schema: Desc, body: JsonObject): MessageShape<Desc> {
  const message = decode(schema, body);
  const result = validator.validate(schema, message);
  if (result.kind !== "valid") throw violationFault("", result);
  return message;
}

function decode<Desc extends DescMessage>(schema: Desc, body: JsonObject): MessageShape<Desc> {
  try {
    return fromJson(schema, body, { ignoreUnknownFields: false });
  } catch (error: unknown) {
    throw decodeFault(schema, body, "", error);
  }
}
