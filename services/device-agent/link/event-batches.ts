import type { Event } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** About how many bytes of output one message carries: far less than what a client reads at most. */
const TARGET_BYTES = 1024 * 1024;

/**
 * Splits a batch into messages: each holds about TARGET_BYTES, or a single event that is larger. The events' order is
 * kept.
 */
export function* splitEvents(batch: readonly Event[]): Generator<Event[], void, void> {
  let part: Event[] = [];
  let bytes = 0;
  for (const event of batch) {
    const size = payloadBytes(event);
    if (part.length > 0 && bytes + size > TARGET_BYTES) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(event);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

/** The bytes that can be many; the rest of an event is small. */
function payloadBytes({ event }: Event): number {
  if (event.case === "finished") return event.value.output.length;
  return event.case === "output" ? event.value.data.length : 0;
}
