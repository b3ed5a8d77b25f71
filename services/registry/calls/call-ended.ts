import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { CallEndedSchema } from "../../../gen/ts/reeve/call/v1/call_events_pb.ts";
import type { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { envelopeOf } from "../../../lib/events/envelope.ts";
import { functionId } from "../../../lib/ids/function-id.ts";
import { timeOrderedId } from "../../../lib/ids/time-ordered-id.ts";
import type { GovernedCall } from "./governed-call.ts";

/** The event that a call ended. */
export function callEndedEvent(call: GovernedCall, state: CallState, now: number): EventEnvelope {
  const received = call.createTime === undefined ? now : timestampMs(call.createTime);
  const event = create(CallEndedSchema, {
    callId: call.id,
    state,
    deviceId: call.spec.deviceId,
    tool: call.spec.tool,
    principalId: call.spec.principalId,
    reason: call.status.error?.reason ?? ErrorReason.UNSPECIFIED,
    duration: durationFromMs(Math.max(0, now - received)),
    functionId: functionId(call.spec.capabilities),
  });
  return envelopeOf(CallEndedSchema, event, {
    id: timeOrderedId("evt", now),
    time: new Date(now),
    actor: call.spec.principalId,
    key: call.id,
  });
}
