import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { pauseAfter, type Subscription } from "./bus.ts";

/** One who takes what waits in a channel. */
export interface Consumer {
  handler: (event: Uint8Array) => Promise<void>;
  maxDeliveries: number;
}

/** A place in the stream of events: what waits there, and who takes it, one event at a time. */
export interface Channel {
  /** True when somebody takes its events but is as far behind as is allowed. */
  isFull(): boolean;
  /** Adds an event. Where nobody takes them and the channel is full, the oldest one gives way. */
  push(event: Uint8Array): void;
  /** Begins delivery to one more consumer; several share the events. */
  attach(consumer: Consumer): Subscription;
  /** Closes every subscription. */
  close(): Promise<void>;
}

/** What a channel needs. */
export interface ChannelOptions {
  /** How many events may wait. */
  capacity: number;
  /** An event is lost: no handler took it (with the last error), or nobody came. */
  onDropped: (event: Uint8Array, error?: unknown) => void;
}

interface Attached extends Consumer {
  closing: AbortController;
  busy: Promise<void>;
}

/** Makes an empty channel. Delivery never runs inside the caller's own turn. */
export function createChannel({ capacity, onDropped }: ChannelOptions): Channel {
  const waiting: Uint8Array[] = [];
  let consumers: Attached[] = [];
  let attempts = 0;
  let delivering = false;

  function wake(): void {
    if (delivering) return;
    delivering = true;
    void deliver();
  }

  async function deliver(): Promise<void> {
    await nextTurn();
    for (let event = waiting[0]; event && consumers[0]; event = waiting[0]) {
      const [consumer, ...others] = consumers;
      consumers = [...others, consumer];
      consumer.busy = attempt(consumer, event);
      await consumer.busy;
    }
    delivering = false;
  }

  async function attempt(consumer: Attached, event: Uint8Array): Promise<void> {
    attempts += 1;
    try {
      await consumer.handler(event);
      settle(event);
    } catch (error: unknown) {
      if (attempts < consumer.maxDeliveries) return pauseUnless(consumer.closing.signal, pauseAfter(attempts));
      settle(event);
      onDropped(event, error);
    }
  }

  /** Done with the first event, unless it gave way meanwhile. */
  function settle(event: Uint8Array): void {
    if (waiting[0] !== event) return;
    waiting.shift();
    attempts = 0;
  }

  async function detach(consumer: Attached): Promise<void> {
    consumers = consumers.filter((other) => other !== consumer);
    consumer.closing.abort();
    await consumer.busy;
  }

  return {
    isFull: () => consumers.length > 0 && waiting.length >= capacity,
    push(event) {
      const [oldest] = waiting;
      if (oldest && consumers.length === 0 && waiting.length >= capacity) {
        settle(oldest);
        onDropped(oldest);
      }
      waiting.push(event);
      wake();
    },
    attach(consumer) {
      const attached = { ...consumer, closing: new AbortController(), busy: Promise.resolve() };
      consumers.push(attached);
      wake();
      return { close: () => detach(attached) };
    },
    close: async () => void (await Promise.all(consumers.map(detach))),
  };
}

/** Waits, but not on after the signal: then the event stays first in its channel. */
async function pauseUnless(signal: AbortSignal, milliseconds: number): Promise<void> {
  try {
    await pause(milliseconds, undefined, { signal });
  } catch {
    // The signal ended the pause; there is nothing else that can fail.
  }
}
