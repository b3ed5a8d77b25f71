import { fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import type { CompleteCall } from "../../client/complete-call.ts";
import { CallSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { type Signed, SignedSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Receipt, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { wholeJson } from "../print/json.ts";

/** The statement of a signed receipt; undefined where there is none or it cannot be read. Its signature is not checked here. */
export function receiptOf(signed: Signed | undefined): Receipt | undefined {
  if (signed === undefined) return undefined;
  try {
    return fromBinary(ReceiptSchema, signed.statement);
  } catch {
    return undefined;
  }
}

/** A receipt's statement as ProtoJSON. */
export function receiptJson(signed: Signed | undefined): JsonObject | undefined {
  const receipt = receiptOf(signed);
  return receipt && objectOf(wholeJson(ReceiptSchema, receipt));
}

/**
 * A call as ProtoJSON, with its receipt decoded: in its status, `receipt` is the device's statement, and `signedReceipt` the
 * binary reeve.common.v1.Signed in base64, which can be verified.
 */
export function callJson(call: CompleteCall): JsonObject {
  const json = objectOf(wholeJson(CallSchema, call));
  const { receipt } = call.status;
  if (receipt === undefined) return json;
  const signedReceipt = Buffer.from(toBinary(SignedSchema, receipt)).toString("base64");
  return { ...json, status: { ...objectOf(json.status), receipt: receiptJson(receipt) ?? null, signedReceipt } };
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
