import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { DeviceEvent, DeviceHello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** The Hello that a stream begins with, which is where a device is let in. Throws INVALID_INPUT for anything else. */
export function helloOf([first, ...rest]: readonly DeviceEvent[]): DeviceHello {
  if (first?.event.case !== "hello") throw malformed("required", "the first event of a stream is Hello");
  requireNoHello(rest);
  return first.event.value;
}

/** Throws INVALID_INPUT for a Hello among later events: who a device is does not change after it was let in. */
export function requireNoHello(events: readonly DeviceEvent[]): void {
  if (events.some(({ event }) => event.case === "hello")) {
    throw malformed("first", "a device says Hello once in a stream, and first; dial again to say something else");
  }
}

function malformed(rule: string, message: string): Error {
  return fault(ErrorReason.INVALID_INPUT, { field: "frame.events.hello", rule }, { message });
}
