import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Event, EventSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { splitEvents } from "./event-batches.ts";

const MIB = 1024 * 1024;

function finished(bytes: number): Event {
  return create(EventSchema, { event: { case: "finished", value: { output: Buffer.alloc(bytes) } } });
}

function sizes(batch: Event[]): number[] {
  return [...splitEvents(batch)].map((events) => events.length);
}

test("keeps small events in one message", () => {
  expect(sizes([finished(10), finished(20), finished(30)])).toEqual([3]);
});

test("starts a new message where the old one would become too large", () => {
  expect(sizes([finished(MIB / 2), finished(MIB / 2), finished(1), finished(2 * MIB), finished(1)])).toEqual([
    2, 1, 1, 1,
  ]);
});

test("sends nothing for nothing", () => {
  expect(sizes([])).toEqual([]);
});
