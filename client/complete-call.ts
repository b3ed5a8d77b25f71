import { create } from "@bufbuild/protobuf";
import {
  type Call,
  type CallSpec,
  CallSpecSchema,
  type CallStatus,
  CallStatusSchema,
} from "../gen/ts/reeve/call/v1/call_pb.ts";

/** A call with its spec and its status, as every registry sends them: messages that a field holds are optional in Protobuf. */
export type CompleteCall = Call & { spec: CallSpec; status: CallStatus };

/** A received call, with an empty spec or status where it came without. */
export function completeCall(call: Call): CompleteCall {
  call.spec ??= create(CallSpecSchema);
  call.status ??= create(CallStatusSchema);
  return call as CompleteCall;
}
