import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { createSessions } from "./sessions.ts";

async function* nothing() {
  // A device that has not said anything.
}

test("lets a device attach ten times at once, and then once a second; others are not its business", async () => {
  let now = 0;
  const sessions = createSessions({ rate: { now: () => now } });
  const refusalOf = (deviceId = "dev-a") => {
    try {
      sessions.attach(deviceId, nothing(), new AbortController().signal);
    } catch (error: unknown) {
      return faultDetail(error);
    }
    return undefined;
  };
  for (let dial = 0; dial < 10; dial++) expect(refusalOf()).toBeUndefined();
  expect(refusalOf()).toMatchObject({
    reason: ErrorReason.RATE_LIMITED,
    metadata: { limit: "1/s", retry_after_ms: "1000" },
  });
  expect(refusalOf("dev-b")).toBeUndefined();
  now = 1000;
  expect(refusalOf()).toBeUndefined();
  expect(refusalOf()?.reason).toBe(ErrorReason.RATE_LIMITED);
  await sessions.close();
});
