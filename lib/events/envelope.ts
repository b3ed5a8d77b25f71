import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { fault } from "../fault/fault.ts";
import { invalidField } from "../fault/invalid-input.ts";
import { isSubject, subjectOf } from "./subject.ts";

/** What an event says besides its payload. */
export interface EnvelopeHead {
  /** The event's id, from 1 to 128 characters: the same id is the same event, and is delivered once. */
  id: string;
  /** When the fact was stored. */
  time: Date;
  /** The principal that caused it, or the service's own name. */
  actor: string;
  /** The key of what the event is about, such as a call's id; the last part of the subject. */
  key: string;
}

/** The largest payload, in bytes: an envelope fits into a NATS message of the default size. */
const MAX_PAYLOAD_BYTES = 512 * 1024;

const ID = /^[\x21-\x7e]{1,128}$/;

/** Wraps an event's message, ready to be enqueued or published. */
export function envelopeOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  head: EnvelopeHead,
): EventEnvelope {
  return create(EventEnvelopeSchema, {
    id: head.id,
    time: timestampFromDate(head.time),
    actor: head.actor,
    subject: subjectOf(schema.typeName, head.key),
    type: schema.typeName,
    payload: toBinary(schema, message),
  });
}

/** Throws ERROR_REASON_INVALID_INPUT or ERROR_REASON_INPUT_TOO_LARGE for an envelope that no bus would carry. */
export function checkEnvelope(envelope: EventEnvelope): void {
  if (!ID.test(envelope.id)) throw invalidField("id", "id", "must be 1 to 128 printable characters without spaces");
  if (envelope.type === "") throw invalidField("type", "required", "must be a full message name");
  if (!isSubject(envelope.subject)) throw invalidField("subject", "subject", "must be plain tokens under the root");
  if (envelope.payload.length > MAX_PAYLOAD_BYTES) {
    throw fault(ErrorReason.INPUT_TOO_LARGE, { limit: String(MAX_PAYLOAD_BYTES), field: "payload" });
  }
}
