import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import {
  busNotReady,
  checkDurableName,
  DEFAULT_MAX_DELIVERIES,
  type EventBus,
  type EventLogger,
  SILENT_LOGGER,
  type SubscribeOptions,
  type Subscription,
} from "./bus.ts";
import { checkEnvelope } from "./envelope.ts";
import { type Channel, createChannel } from "./in-process-channel.ts";
import { type SubjectMatcher, subjectMatcher } from "./subject.ts";

/** What can be chosen. */
export interface InProcessBusOptions {
  logger?: EventLogger;
  /** How many events may wait for one subscription. Default 10 000. */
  capacity?: number;
}

/** How many event ids are remembered, to take a repeated one only once. */
const REMEMBERED_IDS = 65_536;

interface Place {
  matches: SubjectMatcher;
  channel: Channel;
}

/**
 * A bus inside one process, for all services in one. When a subscriber is `capacity` events behind, publish rejects as
 * it does when a server is away, so the outbox holds what is to come. What waits for a durable name that nobody has
 * taken up again is bounded too: the oldest events are dropped and counted. Everything is forgotten with the process.
 */
export function createInProcessBus(options: InProcessBusOptions = {}): EventBus {
  const { logger = SILENT_LOGGER, capacity = 10_000 } = options;
  /** By durable name; a subscription without one is its own key. */
  const places = new Map<string | symbol, Place>();
  const seen = createRecentIds(REMEMBERED_IDS);
  let dropped = 0;
  let closed = false;

  function onDropped(bytes: Uint8Array, error?: unknown): void {
    dropped += 1;
    const { id, subject } = fromBinary(EventEnvelopeSchema, bytes);
    logger.error({ err: error, id, subject }, "an event was dropped");
  }

  function placeOf({ subject, durable }: SubscribeOptions): [string | symbol, Channel] {
    const matches = subjectMatcher(subject);
    const key = durable ?? Symbol(subject);
    const channel = places.get(key)?.channel ?? createChannel({ capacity, onDropped });
    places.set(key, { matches, channel });
    return [key, channel];
  }

  function subscribe(request: SubscribeOptions): Subscription {
    const [key, channel] = placeOf(request);
    const subscription = channel.attach({
      // Decoded for each handler, so that no two share an object.
      handler: (bytes) => request.handler(fromBinary(EventEnvelopeSchema, bytes)),
      maxDeliveries: request.maxDeliveries ?? DEFAULT_MAX_DELIVERIES,
    });
    return {
      close() {
        if (typeof key === "symbol") places.delete(key);
        return subscription.close();
      },
    };
  }

  function distribute(envelope: EventEnvelope): void {
    const bytes = toBinary(EventEnvelopeSchema, envelope);
    for (const { matches, channel } of places.values()) if (matches(envelope.subject)) channel.push(bytes);
  }

  return {
    async publish(envelopes) {
      if (closed) throw busNotReady("the event bus is closed");
      envelopes.forEach(checkEnvelope);
      const full = places.values().some(({ channel }) => channel.isFull());
      if (full) throw busNotReady(`a subscriber is ${capacity} events behind`);
      for (const envelope of envelopes) if (seen.add(envelope.id)) distribute(envelope);
    },
    async subscribe(request) {
      if (closed) throw busNotReady("the event bus is closed");
      checkDurableName(request.durable);
      return subscribe(request);
    },
    isHeard: () => places.size > 0,
    status: () => ({ kind: "in-process", connected: !closed, server: "", degraded: [], dropped }),
    async close() {
      closed = true;
      await Promise.all(places.values().map(({ channel }) => channel.close()));
    },
  };
}

/** The last ids there were: `add` is true for an id that is not among them. */
function createRecentIds(limit: number): { add(id: string): boolean } {
  const ids = new Set<string>();
  return {
    add(id) {
      if (ids.has(id)) return false;
      ids.add(id);
      const [oldest] = ids.size > limit ? ids : [];
      if (oldest !== undefined) ids.delete(oldest);
      return true;
    },
  };
}
