import { createRouterTransport } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallService } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { testCall } from "../../testkit/test-call.ts";
import { recordedCall } from "./recorded-call.ts";

/** A registry that has the record of each call's end when it is asked for the second time. */
function registryOf(state: CallState) {
  let asked = 0;
  const transport = createRouterTransport(({ service }) => {
    service(CallService, {
      getCall({ callId }) {
        asked += 1;
        return { call: { id: callId, status: { state, ...(asked > 1 && { outcomeAuditIndex: 7n }) } } };
      },
    });
  });
  return { registry: registryClient(transport), asked: () => asked };
}

it("asks until the end is on record", async () => {
  const { registry, asked } = registryOf(CallState.CANCELED);
  const call = await recordedCall({ registry }, testCall({ id: "c", state: CallState.CANCELED }));
  expect(call.status.outcomeAuditIndex).toBe(7n);
  expect(asked()).toBe(2);
});

it.each(["DENIED", "EXPIRED"] as const)("asks for no record of an end as %s", async (name) => {
  const { registry, asked } = registryOf(CallState[name]);
  const ended = testCall({ id: "c", state: CallState[name] });
  expect(await recordedCall({ registry }, ended)).toBe(ended);
  expect(asked()).toBe(0);
});
