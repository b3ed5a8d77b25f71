import { setImmediate as nextTurn } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import type { EventLogger, SubscribeOptions, Subscription } from "./bus.ts";

/** How many events may wait for one handler. */
const CAPACITY = 10_000;

/** The events that wait for one subscription's handler. */
export interface Delivery extends Subscription {
  /** Adds an encoded envelope. The handler never runs inside the caller's own turn. */
  push(envelope: Uint8Array): void;
}

/** Delivers to a handler one event at a time. What it fails on, or is too far behind for, is logged and lost. */
export function createDelivery({ subject, handler }: SubscribeOptions, logger: EventLogger): Delivery {
  let waiting: Uint8Array[] = [];
  let running: Promise<void> | undefined;
  let isBehind = false;
  let closed = false;

  async function deliver(): Promise<void> {
    for (await nextTurn(); waiting.length > 0; ) {
      const batch = waiting;
      waiting = [];
      for (const bytes of batch) if (!closed) await handle(bytes);
    }
    isBehind = false;
    running = undefined;
  }

  async function handle(bytes: Uint8Array): Promise<void> {
    try {
      // Decoded for each handler, so that no two share an object.
      await handler(fromBinary(EventEnvelopeSchema, bytes));
    } catch (err: unknown) {
      logger.error({ err, subject }, "event not handled");
    }
  }

  return {
    push(bytes) {
      if (closed) return;
      if (waiting.length < CAPACITY) waiting.push(bytes);
      else if (!isBehind) {
        isBehind = true;
        logger.error({ subject, capacity: CAPACITY }, "subscriber too far behind, events dropped");
      }
      running ??= deliver();
    },
    async close() {
      closed = true;
      await running;
    },
  };
}
