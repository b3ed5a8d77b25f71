import { fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { type Call, CallSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
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
 * A call as ProtoJSON, with its receipt decoded: `receipt` is the device's statement, and `signedReceipt` the binary
 * reeve.common.v1.Signed in base64, which can be verified.
 */
export function callJson(call: Call): JsonObject {
  const { receipt: _signed, ...rest } = objectOf(wholeJson(CallSchema, call));
  if (call.receipt === undefined) return rest;
  const signedReceipt = Buffer.from(toBinary(SignedSchema, call.receipt)).toString("base64");
  return { ...rest, receipt: receiptJson(call.receipt) ?? null, signedReceipt };
}

function objectOf(value: JsonValue): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
