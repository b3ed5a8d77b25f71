import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EventEnvelope } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { fault } from "../fault/fault.ts";

/**
 * Carries events from those who publish to those who subscribe; it does not remember them: the outbox is the truth.
 * Delivery is at least once, so a handler must be idempotent by the event's id. A subscription gets what one publisher
 * published in the order it was published, one event at a time.
 */
export interface EventBus {
  /**
   * Resolves when the bus has all of them. An id that the bus has had in the last minutes is taken and not delivered
   * again. Rejects ERROR_REASON_NOT_READY when the bus cannot take them now: publish all of the same again, later.
   * Await one publish before the next where their order matters.
   */
  publish(envelopes: readonly EventEnvelope[]): Promise<void>;
  /** Resolves when every event published from now on will be delivered. */
  subscribe(options: SubscribeOptions): Promise<Subscription>;
  status(): BusStatus;
  /** False while what is published reaches nobody, so that a publisher need not even write it down. */
  isHeard(): boolean;
  /** Closes every subscription, then the bus. */
  close(): Promise<void>;
}

/** What to deliver, and to whom. */
export interface SubscribeOptions {
  /** A subject, or a pattern with NATS wildcards: "*" is one token, a final ">" one or more. */
  subject: string;
  /**
   * A name (letters, digits, "_" and "-", at most 64) under which the bus keeps the place: who subscribes by this name
   * again goes on where it stopped, and several who use it at the same time share the events. A name that is new begins
   * with now. Default: none; begins with now and ends with the subscription.
   */
  durable?: string;
  /** Takes one event. When it throws, the event comes again after a growing pause, before any later one. */
  handler: (envelope: EventEnvelope) => Promise<void>;
  /** How often one event is tried before it is given up, logged and counted. Default 10: about half a minute. */
  maxDeliveries?: number;
}

/** Delivery to one handler. */
export interface Subscription {
  /** Resolves when the handler runs no more. An event it was working on is settled first. */
  close(): Promise<void>;
}

/** How a bus does. */
export interface BusStatus {
  kind: "in-process" | "nats";
  connected: boolean;
  /** The server's version; empty for the in-process bus. */
  server: string;
  /** What the server does not give, a sentence each. */
  degraded: readonly string[];
  /** Events that were not delivered to one who wanted them, since start: no handler took them, or nobody came. */
  dropped: number;
}

/** Where a bus reports what no caller hears. A pino logger fits. */
export interface EventLogger {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Logs nothing. */
export const SILENT_LOGGER: EventLogger = { warn: () => {}, error: () => {} };

/** How often one event is tried, unless the subscriber says otherwise. */
export const DEFAULT_MAX_DELIVERIES = 10;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
const DURABLE_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** How long to wait after so many failed attempts, in milliseconds: doubles from 100 ms to 10 s. */
export function pauseAfter(attempts: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempts - 1));
}

/** Throws when a durable name is not one. */
export function checkDurableName(name: string | undefined): void {
  if (name === undefined || DURABLE_NAME.test(name)) return;
  throw new Error(`"${name}" is no durable name: 1 to 64 letters, digits, "_" and "-"`);
}

/** The bus cannot take or deliver events now. */
export function busNotReady(message: string, cause?: unknown): Error {
  return fault(ErrorReason.NOT_READY, {}, { message, cause });
}
