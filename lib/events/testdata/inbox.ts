import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";

/** Keeps what a handler was given, so that a test can await it. */
export interface Inbox {
  /** A handler that takes everything. */
  take: (envelope: EventEnvelope) => Promise<void>;
  envelopes: EventEnvelope[];
  keys: string[];
  /** Resolves with all keys as soon as there are so many. */
  until(count: number): Promise<string[]>;
}

/** An empty inbox. A key is the envelope's actor unless another is asked for. */
export function createInbox(keyOf: (envelope: EventEnvelope) => string = (envelope) => envelope.actor): Inbox {
  const envelopes: EventEnvelope[] = [];
  const keys: string[] = [];
  const waiting: { count: number; done: () => void }[] = [];
  return {
    envelopes,
    keys,
    async take(envelope) {
      envelopes.push(envelope);
      keys.push(keyOf(envelope));
      for (const { count, done } of waiting) if (keys.length >= count) done();
    },
    async until(count) {
      if (keys.length < count) await new Promise<void>((done) => waiting.push({ count, done }));
      return [...keys];
    },
  };
}
