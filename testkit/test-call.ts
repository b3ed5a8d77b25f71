import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CompleteCall } from "../client/complete-call.ts";
import { CallSchema, CallSpecSchema, CallStatusSchema } from "../gen/ts/reeve/call/v1/call_pb.ts";

/** What a call for a test has: fields of the call, its spec and its status side by side. */
export type TestCallFields = Omit<MessageInitShape<typeof CallSchema>, "spec" | "status" | "$typeName"> &
  Omit<MessageInitShape<typeof CallSpecSchema>, "$typeName"> &
  Omit<MessageInitShape<typeof CallStatusSchema>, "$typeName">;

/** A call for a test. `create` takes of the fields those that a message has. */
export function testCall(fields: TestCallFields = {}): CompleteCall {
  const [spec, status] = [create(CallSpecSchema, fields), create(CallStatusSchema, fields)];
  return { ...create(CallSchema, fields), spec, status };
}
