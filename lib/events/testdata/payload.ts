import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";

/** The message inside an envelope; undefined when the envelope holds another type. Throws when the bytes are damaged. */
export function payloadOf<Desc extends DescMessage>(
  schema: Desc,
  envelope: EventEnvelope,
): MessageShape<Desc> | undefined {
  return envelope.type === schema.typeName ? fromBinary(schema, envelope.payload) : undefined;
}
