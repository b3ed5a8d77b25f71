import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { DeviceEventSchema } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { eventShape } from "./device-frames.ts";

test.each([
  ["metadata", { metadata: Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`key-${n}`, "value"])) }],
  ["violations", { violations: Array.from({ length: 50_000 }, () => ({ field: "params.argv", message: "wrong" })) }],
  ["empty violations", { violations: Array.from({ length: 50_000 }, () => ({})) }],
])("an end counts about what it is on the wire: %s", (_, error) => {
  const event = create(DeviceEventSchema, { event: { case: "finished", value: { callId: "c", error } } });
  expect(eventShape.sizeOf(event)).toBeGreaterThanOrEqual(toBinary(DeviceEventSchema, event).length);
});
