import { type DescMessage, fromJson, type JsonObject, type MessageShape } from "@bufbuild/protobuf";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import type { GovernedCall } from "../../calls/governed-call.ts";

/**
 * A call as the answer of a typed RPC: its output as the tool's own message, without what the message does not know. A call
 * that did not succeed is thrown as its own error, and one that is held as APPROVAL_REQUIRED{approval_id,call_id}.
 */
export function responseOf<Desc extends DescMessage>(output: Desc, call: GovernedCall): MessageShape<Desc> {
  switch (call.status.state) {
    case CallState.SUCCEEDED:
      return decode(output, call);
    case CallState.HELD:
      throw held(call);
    default:
      throw failed(call);
  }
}

function decode<Desc extends DescMessage>(output: Desc, call: GovernedCall): MessageShape<Desc> {
  const json: JsonObject = call.status.output ?? {};
  try {
    return fromJson(output, json, { ignoreUnknownFields: true });
  } catch (cause: unknown) {
    const message = `the tool ran, but what it returned is no ${output.typeName}; call ${call.id} holds it`;
    throw fault(ErrorReason.RECEIPT_INVALID, { what: "output" }, { message, cause });
  }
}

function held({ id, status }: GovernedCall): Error {
  const approvalId = status.approval?.id ?? "";
  const message =
    `a human has to decide first: approval ${approvalId}. ` +
    `The call ${id} runs once it is approved; the same request with this call id returns its end`;
  return fault(ErrorReason.APPROVAL_REQUIRED, { approval_id: approvalId, call_id: id }, { message });
}

function failed({ id, status: { error, errorMessage } }: GovernedCall): Error {
  if (error === undefined) {
    const message = `the call ${id} has not ended and nothing more is known of it here`;
    return fault(ErrorReason.INTERRUPTED, { call_id: id }, { message });
  }
  const violations = error.violations.map(({ field, message }) => ({ field, message }));
  const message = errorMessage === "" ? undefined : errorMessage;
  return fault(error.reason, error.metadata, { violations, ...(message === undefined ? {} : { message }) });
}
