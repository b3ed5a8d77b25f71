import { create, type DescMessage, type JsonObject, type MessageShape, toJson } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { parseMessage } from "../json/message.ts";
import type { Codec } from "./codec.ts";

/** Compiles the rules of each message once, for all codecs. */
const shared = createValidator();

/** The codec of an input that a protobuf message defines: ProtoJSON, strict about unknown fields, then protovalidate. */
export function descriptorCodec<Desc extends DescMessage>(
  desc: Desc,
  validator: Validator = shared,
): Codec<MessageShape<Desc>> {
  return {
    parse: (args) => parseMessage(validator, desc, args),
    toJson: (input) => toJson(desc, input) as JsonObject,
  };
}

/** Compiles a message's rules ahead: the first use of each is slow. */
export function warmRules(desc: DescMessage): void {
  shared.validate(desc, create(desc));
}
