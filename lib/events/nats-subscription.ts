import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import {
  DEFAULT_MAX_DELIVERIES,
  type EventLogger,
  pauseAfter,
  type SubscribeOptions,
  type Subscription,
} from "./bus.ts";
import { ACK_WAIT_MS, type NatsLink, type NatsMessage, type NatsMessages, type StreamPosition } from "./nats-link.ts";

/** Who hears what the handler does not. */
export interface SubscriptionReports {
  logger: EventLogger;
  /** No handler took the event, or (with no envelope) it is none of ours. */
  onDropped(subject: string, envelope: EventEnvelope | undefined, error: unknown): void;
}

/** How long to wait before a broken subscription is set up again, in milliseconds. */
const RESUBSCRIBE_MS = 250;

/** Delivery to one handler, and how far it has come. */
interface Delivery {
  name: string;
  request: SubscribeOptions;
  /** The stream that `settled` counts in; undefined until the server was there to say. */
  stream: string | undefined;
  /** The stream's sequence number of the last event that needs no delivery any more. */
  settled: number;
  closing: boolean;
  /** Resolves when it is closing. */
  closed: PromiseWithResolvers<void>;
  messages: NatsMessages | undefined;
}

/** Delivers a stream's events to a handler until closed, across reconnects and the loss of the server's own state. */
export async function subscribeNats(
  link: NatsLink,
  request: SubscribeOptions,
  reports: SubscriptionReports,
): Promise<Subscription> {
  const name = request.durable ?? `ephemeral_${randomUUID()}`;
  const closed = Promise.withResolvers<void>();
  const delivery: Delivery = {
    name,
    request,
    stream: undefined,
    settled: 0,
    closing: false,
    closed,
    messages: undefined,
  };
  try {
    begin(delivery, await link.position());
    await ensureConsumer(link, delivery);
  } catch (error: unknown) {
    if (link.isUp()) throw error;
    // Without a server nothing is published either: it begins where the stream is when the server comes.
  }
  const stop = () => delivery.messages?.stop();
  const stopListening = link.onDown(stop);
  const stopped = keepDelivering(link, delivery, reports);
  return {
    async close() {
      delivery.closing = true;
      closed.resolve();
      stopListening();
      stop();
      await stopped;
      if (request.durable === undefined && link.isUp()) await link.removeConsumer(name).catch(() => {});
    },
  };
}

function begin(delivery: Delivery, { stream, last: settled }: StreamPosition): void {
  Object.assign(delivery, { stream, settled });
}

/** A consumer that the server has lost, by its disk or by an operator's hand, is made again behind what was settled. */
async function ensureConsumer(link: NatsLink, delivery: Delivery): Promise<void> {
  const { name, request } = delivery;
  await link.ensureStream();
  const first = link.first();
  if (delivery.stream === undefined && first !== undefined) begin(delivery, first);
  const { stream } = await link.position();
  // A stream that was made anew counts from 1 again, and nothing in it was delivered yet.
  if (stream !== delivery.stream) Object.assign(delivery, { stream, settled: 0 });
  const start = delivery.settled + 1;
  await link.ensureConsumer({ name, subject: request.subject, start, ephemeral: request.durable === undefined });
}

async function keepDelivering(link: NatsLink, delivery: Delivery, reports: SubscriptionReports): Promise<void> {
  while (!delivery.closing && !link.isClosed()) {
    try {
      await deliverUntilBroken(link, delivery, reports);
    } catch (error: unknown) {
      if (delivery.closing) return;
      reports.logger.warn({ err: error, consumer: delivery.name }, "a subscription broke; it is set up again");
      await Promise.race([pause(RESUBSCRIBE_MS), delivery.closed.promise]);
    }
  }
}

async function deliverUntilBroken(link: NatsLink, delivery: Delivery, reports: SubscriptionReports): Promise<void> {
  await Promise.race([link.whenUp(), delivery.closed.promise]);
  if (delivery.closing) return;
  await ensureConsumer(link, delivery);
  const messages = await link.consume(delivery.name);
  delivery.messages = messages;
  // Whatever happened while there was nothing to stop.
  if (delivery.closing || !link.isUp()) messages.stop();
  for await (const message of messages) {
    if (delivery.closing) message.retry(0);
    else await handle(delivery, message, reports);
  }
}

async function handle(delivery: Delivery, message: NatsMessage, reports: SubscriptionReports): Promise<void> {
  const { handler, maxDeliveries = DEFAULT_MAX_DELIVERIES } = delivery.request;
  const heartbeat = setInterval(() => message.stillWorking(), ACK_WAIT_MS / 3);
  let envelope: EventEnvelope | undefined;
  try {
    envelope = fromBinary(EventEnvelopeSchema, message.data);
    await handler(envelope);
    message.ack();
    delivery.settled = message.sequence;
  } catch (error: unknown) {
    if (envelope && message.attempt < maxDeliveries) return message.retry(pauseAfter(message.attempt));
    message.giveUp();
    delivery.settled = message.sequence;
    reports.onDropped(message.subject, envelope, error);
  } finally {
    clearInterval(heartbeat);
  }
}
