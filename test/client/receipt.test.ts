import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { CompleteCall } from "../../client/complete-call.ts";
import { verifyReceipt } from "../../client/receipt.ts";
import type { Signed } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { GRANT_TYPE, RECEIPT_TYPE } from "../../lib/sign/payload-types.ts";
import { testCall } from "../../testkit/test-call.ts";

const key = generateSigningKey();
const deviceId = `dev-${key.keyId}`;

/** The calls of one batch of receipts. */
async function calls(count: number, statementType = RECEIPT_TYPE, signer = key): Promise<CompleteCall[]> {
  const { sign } = createBatchSigner({ key: signer, statementType });
  const ids = Array.from({ length: count }, (_, index) => `call-${index}`);
  const receipts = await Promise.all(
    ids.map((callId) => sign(toBinary(ReceiptSchema, create(ReceiptSchema, { callId, deviceId, tool: "exec" })))),
  );
  return ids.map((id, index) => callWith({ id }, receipts[index]));
}

function callWith(
  fields: { id?: string; tool?: string; deviceId?: string },
  receipt: Signed | undefined,
): CompleteCall {
  return testCall({ id: "call-0", tool: "exec", deviceId, ...fields, ...(receipt && { receipt }) });
}

async function one(): Promise<CompleteCall & { receipt: Signed }> {
  const [call] = await calls(3);
  if (call?.status.receipt === undefined) throw new Error("nothing was signed");
  return { ...call, receipt: call.status.receipt };
}

describe("a receipt", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 33])("is verified, wherever it is in a batch of %i", async (count) => {
    const results = await Promise.all((await calls(count)).map((call) => verifyReceipt(call, key.raw)));
    expect(results.map((result) => result.ok && result.receipt.callId)).toEqual(
      Array.from({ length: count }, (_, index) => `call-${index}`),
    );
  });

  it("that is missing, or of another key, is refused", async () => {
    const stranger = generateSigningKey();
    const call = await one();
    expect(await verifyReceipt(callWith({}, undefined), key.raw)).toEqual({
      ok: false,
      problem: "there is no receipt",
    });
    expect(await verifyReceipt(call, stranger.raw)).toMatchObject({ problem: "the key is not this device's" });
    const [forged] = await calls(1, RECEIPT_TYPE, { ...stranger, keyId: key.keyId });
    expect(await verifyReceipt(forged as CompleteCall, key.raw)).toMatchObject({
      problem: "the device did not sign it",
    });
  });

  it("is about one call", async () => {
    const { receipt } = await one();
    for (const other of [{ id: "call-1" }, { tool: "fs.read" }]) {
      expect(await verifyReceipt(callWith(other, receipt), key.raw)).toMatchObject({
        problem: "the receipt is about another call",
      });
    }
  });

  it("that was changed, moved or signed as something else is refused", async () => {
    const { receipt } = await one();
    const statement = receipt.statement.map((byte, index) => (index === 3 ? byte ^ 1 : byte));
    const notSigned = { ok: false, problem: "the receipt is not in the batch that was signed" };
    expect(await verifyReceipt(callWith({}, { ...receipt, statement }), key.raw)).toEqual(notSigned);
    expect(await verifyReceipt(callWith({}, { ...receipt, index: 1 }), key.raw)).toEqual(notSigned);
    expect(await verifyReceipt(callWith({}, { ...receipt, path: receipt.path.slice(1) }), key.raw)).toEqual(notSigned);
    const [grant] = await calls(1, GRANT_TYPE);
    expect(await verifyReceipt(grant as CompleteCall, key.raw)).toMatchObject({
      problem: "the statement is not a receipt",
    });
  });
});
