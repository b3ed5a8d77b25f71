import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { type AttachRate, createAttachRate } from "./attach-rate.ts";

function refusalOf(rate: AttachRate, deviceId = "dev-a") {
  try {
    rate.take(deviceId);
  } catch (error: unknown) {
    return faultDetail(error);
  }
  return undefined;
}

test("lets a device dial ten times at once, and then once a second; others are not its business", () => {
  let now = 0;
  const rate = createAttachRate({ now: () => now });
  for (let dial = 0; dial < 10; dial++) expect(refusalOf(rate)).toBeUndefined();
  expect(refusalOf(rate)).toMatchObject({
    reason: ErrorReason.RATE_LIMITED,
    metadata: { limit: "1/s", retry_after_ms: "1000" },
  });
  expect(refusalOf(rate, "dev-b")).toBeUndefined();
  now = 1000;
  expect(refusalOf(rate)).toBeUndefined();
  expect(refusalOf(rate)?.reason).toBe(ErrorReason.RATE_LIMITED);
});
