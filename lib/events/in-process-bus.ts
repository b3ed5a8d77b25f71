import { toBinary } from "@bufbuild/protobuf";
import { EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { busNotReady, type EventBus, type EventLogger, SILENT_LOGGER } from "./bus.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { checkEnvelope } from "./envelope.ts";
import { subjectMatcher } from "./subject.ts";

/** A bus inside one process, for all services in one. */
export function createInProcessBus({ logger = SILENT_LOGGER }: { logger?: EventLogger } = {}): EventBus {
  const subscribers = new Map<Delivery, (subject: string) => boolean>();
  let closed = false;
  return {
    async publish(envelopes) {
      if (closed) throw busNotReady("the event bus is closed");
      envelopes.forEach(checkEnvelope);
      for (const envelope of envelopes) {
        const bytes = toBinary(EventEnvelopeSchema, envelope);
        for (const [delivery, matches] of subscribers) if (matches(envelope.subject)) delivery.push(bytes);
      }
    },
    async subscribe(options) {
      if (closed) throw busNotReady("the event bus is closed");
      const delivery = createDelivery(options, logger);
      subscribers.set(delivery, subjectMatcher(options.subject));
      return {
        close() {
          subscribers.delete(delivery);
          return delivery.close();
        },
      };
    },
    hasSubscribers: () => subscribers.size > 0,
    status: () => ({ connected: !closed, server: "", degraded: [] }),
    async close() {
      closed = true;
      await Promise.all(subscribers.keys().map((delivery) => delivery.close()));
    },
  };
}
