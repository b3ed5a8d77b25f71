import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EventEnvelope } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { fault } from "../fault/fault.ts";

/** Carries events from publishers to subscribers. It does not remember them: the outbox is the truth. */
export interface EventBus {
  /**
   * Resolves when the bus has all of them. Rejects ERROR_REASON_NOT_READY when it cannot take them now: publish all of
   * the same again, later. A subscriber may receive what is published again once more, with the same id. Await one
   * publish before the next where their order matters.
   */
  publish(envelopes: readonly EventEnvelope[]): Promise<void>;
  /**
   * Passes the events that are published from now on to a handler, those of one publisher in their order, one at a time.
   * An event only wakes: it is lost for a subscriber that is disconnected, too far behind, or fails on it. What an event
   * reports can be looked up, and a subscriber looks it up from time to time without one.
   */
  subscribe(options: SubscribeOptions): Promise<Subscription>;
  status(): BusStatus;
  /** False while what is published reaches no subscriber, so that a publisher need not even write it down. */
  hasSubscribers(): boolean;
  /** Closes every subscription, then the bus. */
  close(): Promise<void>;
}

export interface SubscribeOptions {
  /** A subject, or a pattern with NATS wildcards: "*" is one token, a final ">" one or more. */
  subject: string;
  handler: (envelope: EventEnvelope) => Promise<void>;
}

export interface Subscription {
  /** Resolves when the handler runs no more. An event that it is working on is finished first. */
  close(): Promise<void>;
}

export interface BusStatus {
  connected: boolean;
  /** The server's version; empty for the in-process bus. */
  server: string;
  /** What the server does not give, a sentence each. */
  degraded: readonly string[];
}

/** Where a bus reports what no caller receives. A pino logger fits. */
export interface EventLogger {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Logs nothing. */
export const SILENT_LOGGER: EventLogger = { warn: () => {}, error: () => {} };

/** The bus cannot take or deliver events now. */
export function busNotReady(message: string, cause?: unknown): Error {
  return fault(ErrorReason.NOT_READY, {}, { message, cause });
}
