import { toBinary } from "@bufbuild/protobuf";
import type { NatsConnection, Subscription as NatsSubscription } from "nats";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { busNotReady, type EventBus, SILENT_LOGGER } from "./bus.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { checkEnvelope } from "./envelope.ts";
import type { NatsOptions } from "./nats-connection.ts";
import { type ManagedConnection, manageConnection } from "./nats-managed-connection.ts";
import { type EventStream, openStream } from "./nats-stream.ts";
import { subjectMatcher } from "./subject.ts";

interface Subscriber {
  subject: string;
  delivery: Delivery;
  /** Undefined until the server was reached first. The package makes it again whenever it reconnects. */
  subscription: NatsSubscription | undefined;
}

/**
 * Publishes into the JetStream stream REEVE_EVENTS, which is made where it is missing; see openStream. Subscriptions are
 * plain ones: the stream is for a reader that needs every event, with a consumer of its own. Rejects
 * ERROR_REASON_NOT_READY when a server answers that refuses the login, has no JetStream or is older than 2.9. Where none
 * answers, the bus says that it is degraded and connects as soon as one does; it reconnects for ever. Meanwhile publish
 * rejects.
 */
export async function createNatsBus(options: NatsOptions): Promise<EventBus> {
  const { logger = SILENT_LOGGER } = options;
  const subscribers = new Set<Subscriber>();
  /** The connection that subscriptions are made on, from the moment that those of before were. */
  let connected: NatsConnection | undefined;

  const start = (nc: NatsConnection, subscriber: Subscriber): void => {
    subscriber.subscription = nc.subscribe(subscriber.subject, {
      callback(err, message) {
        if (err !== null) logger.error({ err, subject: subscriber.subject }, "subscription refused");
        // A copy: the package's is a window on what the socket has read.
        else subscriber.delivery.push(new Uint8Array(message.data));
      },
    });
  };
  const connection = await manageConnection(options, async (nc) => {
    const stream = await openStream(nc, options);
    for (const subscriber of subscribers) start(nc, subscriber);
    connected = nc;
    return { nc, stream };
  });

  return {
    publish: (envelopes) => publish(connection, envelopes),
    async subscribe(request) {
      subjectMatcher(request.subject);
      const subscriber: Subscriber = {
        subject: request.subject,
        delivery: createDelivery(request, logger),
        subscription: undefined,
      };
      subscribers.add(subscriber);
      if (connected !== undefined) {
        start(connected, subscriber);
        // Where the connection is down, what is published is not received in any case.
        await connection.request(({ nc }) => nc.flush()).catch(() => undefined);
      }
      return {
        close() {
          subscribers.delete(subscriber);
          subscriber.subscription?.unsubscribe();
          return subscriber.delivery.close();
        },
      };
    },
    hasSubscribers: () => true,
    status: () => ({
      connected: connection.isUp(),
      server: connection.ready()?.nc.info?.version ?? "",
      degraded: degradedOf(connection),
    }),
    async close() {
      await Promise.all(subscribers.values().map(({ delivery }) => delivery.close()));
      await connection.close();
    },
  };
}

type Connection = ManagedConnection<{ nc: NatsConnection; stream: EventStream }>;

function degradedOf(connection: Connection): readonly string[] {
  const why = connection.waitsFor();
  return why === undefined ? (connection.ready()?.stream.degraded ?? []) : [`events wait in the outbox: ${why}`];
}

/**
 * All messages leave in one turn of the event loop, so a connection that ends loses the tail and never the middle:
 * what is published again cannot come behind what followed it. Resolves or rejects when no message is in flight any more.
 */
async function publish(connection: Connection, envelopes: readonly EventEnvelope[]): Promise<void> {
  envelopes.forEach(checkEnvelope);
  const answers = envelopes.map((envelope) =>
    connection.request(({ stream }) =>
      stream.publish(envelope.subject, toBinary(EventEnvelopeSchema, envelope), envelope.id),
    ),
  );
  const failed = (await Promise.allSettled(answers)).find((answer) => answer.status === "rejected");
  if (!failed) return;
  // No server answers where the stream is gone; it is made again for the next attempt.
  await connection.request(({ stream }) => stream.ensure()).catch(() => {});
  throw busNotReady("NATS did not take the events", failed.reason);
}
