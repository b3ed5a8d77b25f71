import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Call,
  CallSchema,
  type CallSpec,
  CallSpecSchema,
  CallState,
  type CallStatus,
  CallStatusSchema,
} from "../../../gen/ts/reeve/call/v1/call_pb.ts";

/** A call as the registry holds it: always with its spec, which never changes, and its status. */
export type GovernedCall = Call & { spec: CallSpec; status: CallStatus };

/** A call that was just received, of which nothing more is known. */
export function newGovernedCall(id: string, spec: CallSpec, nowMs: number): GovernedCall {
  const status = create(CallStatusSchema, { state: CallState.RECEIVED });
  return { ...create(CallSchema, { id, createTime: timestampFromMs(nowMs) }), spec, status };
}

/** A call that came from elsewhere, such as the database or another replica. */
export function governedCall(call: Call): GovernedCall {
  call.spec ??= create(CallSpecSchema);
  call.status ??= create(CallStatusSchema);
  return call as GovernedCall;
}

/** The same call with its arguments as they may be shown. */
export function withArguments(call: GovernedCall, shown: JsonObject): GovernedCall {
  return { ...call, spec: { ...call.spec, arguments: shown } };
}
