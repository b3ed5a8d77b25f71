import { create, equals } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { BatchHeadSchema, SignedSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { envelopeOf } from "./envelope.ts";
import { payloadOf } from "./testdata/payload.ts";

const head = { id: "e1", time: new Date(1_500), actor: "agent:build", key: "c1" };
const message = create(BatchHeadSchema, { statementType: "t", size: 3 });

test("wraps a message with its type and subject, and gives it back", () => {
  const envelope = envelopeOf(BatchHeadSchema, message, head);
  expect(envelope).toMatchObject({
    id: "e1",
    time: { seconds: 1n, nanos: 500_000_000 },
    actor: "agent:build",
    subject: "reeve.common.v1.batch_head.c1",
    type: "reeve.common.v1.BatchHead",
  });
  const unwrapped = payloadOf(BatchHeadSchema, envelope);
  expect(unwrapped && equals(BatchHeadSchema, unwrapped, message)).toBe(true);
});

test("gives nothing for another type", () => {
  expect(payloadOf(SignedSchema, envelopeOf(BatchHeadSchema, message, head))).toBeUndefined();
});
