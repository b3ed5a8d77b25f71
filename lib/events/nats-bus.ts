import { toBinary } from "@bufbuild/protobuf";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { busNotReady, checkDurableName, type EventBus, SILENT_LOGGER, type Subscription } from "./bus.ts";
import { checkEnvelope } from "./envelope.ts";
import type { NatsOptions } from "./nats-connection.ts";
import { type NatsLink, openNatsLink } from "./nats-link.ts";
import { type SubscriptionReports, subscribeNats } from "./nats-subscription.ts";
import { subjectMatcher } from "./subject.ts";

/**
 * Connects to NATS JetStream and makes the stream REEVE_EVENTS (subjects "reeve.>", on disk, 7 days, 1 GiB) where it is
 * missing. Rejects ERROR_REASON_NOT_READY when a server answers that refuses the login, has no JetStream or is older than
 * 2.9. Where none is there, the bus says that it is degraded and connects as soon as one is; it reconnects for ever.
 * Meanwhile publish rejects, and subscriptions go on afterwards where they stopped, or begin.
 */
export async function createNatsBus(options: NatsOptions): Promise<EventBus> {
  const { logger = SILENT_LOGGER } = options;
  const link = await openNatsLink(options);
  const subscriptions = new Set<Subscription>();
  let dropped = 0;
  const reports: SubscriptionReports = {
    logger,
    onDropped(subject, envelope, error) {
      dropped += 1;
      logger.error({ err: error, id: envelope?.id, subject }, "an event was dropped");
    },
  };
  return {
    publish: (envelopes) => publish(link, envelopes),
    async subscribe(request) {
      checkDurableName(request.durable);
      subjectMatcher(request.subject);
      const subscription = await subscribeNats(link, request, reports);
      subscriptions.add(subscription);
      return { close: () => subscription.close().finally(() => subscriptions.delete(subscription)) };
    },
    isHeard: () => true,
    status: () => ({
      kind: "nats",
      connected: link.isUp(),
      server: link.version(),
      degraded: link.degraded(),
      dropped,
    }),
    async close() {
      await Promise.all(subscriptions.values().map((subscription) => subscription.close()));
      await link.close();
    },
  };
}

/**
 * All messages leave in one turn of the event loop, so a connection that breaks cuts off the tail and never the middle:
 * what is published again cannot come behind what followed it. Settles when no message is on its way any more.
 */
async function publish(link: NatsLink, envelopes: readonly EventEnvelope[]): Promise<void> {
  envelopes.forEach(checkEnvelope);
  const answers = envelopes.map((envelope) =>
    link.publish(envelope.subject, toBinary(EventEnvelopeSchema, envelope), envelope.id),
  );
  const failed = (await Promise.allSettled(answers)).find((answer) => answer.status === "rejected");
  if (!failed) return;
  // Nobody answers where the stream is gone; it is there again for the next attempt.
  await link.ensureStream().catch(() => {});
  throw busNotReady("NATS did not take the events", failed.reason);
}
