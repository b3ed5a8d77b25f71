import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  type NatsConnection,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
} from "nats";
import { busNotReady, SILENT_LOGGER } from "./bus.ts";
import { DEFAULT_TIMEOUT_MS, messageOf, NatsAway, type NatsOptions } from "./nats-connection.ts";
import { holdLine } from "./nats-line.ts";
import { judgeNatsVersion } from "./nats-version.ts";
import type { ConnectionWatch } from "./nats-watch.ts";
import { SUBJECT_ROOT } from "./subject.ts";

/**
 * What the bus needs of a NATS connection and its stream. Every request rejects as soon as the connection breaks: the
 * answer cannot come any more.
 */
export interface NatsLink extends ConnectionWatch {
  /** The server's version; empty until one is there. */
  version(): string;
  /** What the server does not give, a sentence each; that there is none so far. */
  degraded(): readonly string[];
  /** Sends at once; resolves when the stream has it. An id that the stream had lately is taken and not stored again. */
  publish(subject: string, data: Uint8Array, id: string): Promise<unknown>;
  /** Makes the stream where it is missing. */
  ensureStream(): Promise<void>;
  /** Which stream it is, and how far it goes. A stream that was made anew has another name for itself. */
  position(): Promise<StreamPosition>;
  /** Where it went to when the server was there first, before anything was published here; undefined until then. */
  first(): StreamPosition | undefined;
  /** Makes the consumer where it is missing, or gives it the subject. */
  ensureConsumer(consumer: NatsConsumer): Promise<void>;
  removeConsumer(name: string): Promise<unknown>;
  /** The consumer's messages, until `stop` or until the server has lost the consumer (then it throws). */
  consume(name: string): Promise<NatsMessages>;
  /** Resolves when the connection is closed. Acknowledgements that were just given go out first. */
  close(): Promise<void>;
}

/** How far a stream goes. */
export interface StreamPosition {
  /** When the stream was made: what tells it from one that was there before. */
  stream: string;
  /** The sequence number of its last event; 0 where it has none. */
  last: number;
}

/** A place in the stream that the server keeps. */
export interface NatsConsumer {
  name: string;
  subject: string;
  /** Where a new one begins. */
  start: number;
  /** Goes away some minutes after its last use. */
  ephemeral: boolean;
}

/** Messages, one at a time: the next comes after the last is settled. */
export interface NatsMessages extends AsyncIterable<NatsMessage> {
  stop(): void;
}

/** One message in hand. */
export interface NatsMessage {
  subject: string;
  data: Uint8Array;
  sequence: number;
  /** From 1; attempts that ended with their process count as well. */
  attempt: number;
  ack(): void;
  /** Gives it back, to come again after so many milliseconds. */
  retry(afterMs: number): void;
  /** Settles it undelivered. */
  giveUp(): void;
  /** Says that it is still being handled; due every ACK_WAIT_MS at least. */
  stillWorking(): void;
}

const STREAM = "REEVE_EVENTS";

// The limits of a stream that is made here; an operator may change them afterwards.
const MAX_AGE_MS = 7 * 24 * 3_600_000;
const MAX_BYTES = 1024 ** 3;
const DUPLICATE_WINDOW_MS = 10 * 60_000;

/** A message in the hands of a consumer that died comes again after this long. */
export const ACK_WAIT_MS = 5_000;

const EPHEMERAL_KEPT_MS = 5 * 60_000;

/** What is made of a connection. */
interface Streaming {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  degraded: string[];
  first: StreamPosition;
}

/**
 * Connects, judges the server and makes the stream. Rejects ERROR_REASON_NOT_READY where a server answers that cannot be
 * used; where none is there it connects in the background. Once up it reconnects for ever.
 */
export async function openNatsLink(options: NatsOptions): Promise<NatsLink> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, replicas = 1, logger = SILENT_LOGGER } = options;
  const line = await holdLine<Streaming>(options, async (nc) => {
    const server = nc.info?.version ?? "";
    const judged = judgeNatsVersion(server);
    if (judged.kind === "refused") throw busNotReady(judged.message);
    for (const sentence of judged.degraded) logger.warn({ server }, `NATS gives less than it could: ${sentence}`);
    const jsm = await nc.jetstreamManager({ timeout: timeoutMs, checkAPI: false });
    try {
      await ensureStream(jsm, replicas);
      const js = nc.jetstream({ timeout: timeoutMs });
      return { nc, js, jsm, degraded: judged.degraded, first: await positionOf(jsm) };
    } catch (e: unknown) {
      // As right after its start, and in a cluster that has no leader yet.
      if (nc.info?.jetstream === true && isPassing(e)) throw new NatsAway("JetStream is not ready yet", { cause: e });
      throw e;
    }
  });
  return {
    ...line,
    version: () => line.ready()?.nc.info?.version ?? "",
    degraded() {
      const why = line.waitsFor();
      return why === undefined ? (line.ready()?.degraded ?? []) : [`events wait in the outbox: ${why}`];
    },
    first: () => line.ready()?.first,
    publish: (subject, data, id) => line.request(({ js }) => js.publish(subject, data, { msgID: id })),
    ensureStream: () => line.request(({ jsm }) => ensureStream(jsm, replicas)),
    position: () => line.request(({ jsm }) => positionOf(jsm)),
    ensureConsumer: (consumer) => line.request(({ jsm }) => ensureConsumer(jsm, consumer)),
    removeConsumer: (name) => line.request(({ jsm }) => jsm.consumers.delete(STREAM, name)),
    async consume(name) {
      const consumer = await line.request(({ js }) => js.consumers.get(STREAM, name));
      // One iterator for the whole connection: `next` and `fetch` leave a listener behind for every message.
      const messages = await consumer.consume({
        expires: 30_000,
        idle_heartbeat: 5_000,
        abort_on_missing_resource: true,
      });
      return { stop: () => messages.stop(), [Symbol.asyncIterator]: () => readMessages(messages) };
    },
  };
}

async function positionOf(jsm: JetStreamManager): Promise<StreamPosition> {
  const { created, state } = await jsm.streams.info(STREAM);
  return { stream: created, last: state.last_seq };
}

async function* readMessages(messages: AsyncIterable<JsMsg>): AsyncGenerator<NatsMessage> {
  for await (const message of messages) {
    yield {
      subject: message.subject,
      // A copy: the package's is a window on what the socket has read.
      data: new Uint8Array(message.data),
      sequence: message.seq,
      attempt: message.info.deliveryCount,
      ack: () => message.ack(),
      retry: (afterMs) => message.nak(afterMs),
      giveUp: () => message.term(),
      stillWorking: () => message.working(),
    };
  }
}

async function ensureStream(jsm: JetStreamManager, replicas: number): Promise<void> {
  try {
    await jsm.streams.info(STREAM);
  } catch (e: unknown) {
    if (!isNotFound(e)) throw busNotReady(`NATS does not offer JetStream: ${messageOf(e)}`, e);
    // Another process that makes it at the same time asks for the same stream, which is no error.
    await jsm.streams.add({
      name: STREAM,
      subjects: [`${SUBJECT_ROOT}.>`],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      max_age: nanos(MAX_AGE_MS),
      max_bytes: MAX_BYTES,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
      num_replicas: replicas,
    });
  }
}

async function ensureConsumer(jsm: JetStreamManager, consumer: NatsConsumer): Promise<void> {
  try {
    const { config } = await jsm.consumers.info(STREAM, consumer.name);
    if (config.filter_subject === consumer.subject) return;
    await jsm.consumers.update(STREAM, consumer.name, { filter_subject: consumer.subject });
  } catch (e: unknown) {
    if (!isNotFound(e)) throw e;
    await jsm.consumers.add(STREAM, consumerConfig(consumer));
  }
}

function consumerConfig({ name, subject, start, ephemeral }: NatsConsumer): Partial<ConsumerConfig> {
  return {
    durable_name: name,
    filter_subject: subject,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: start,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ACK_WAIT_MS),
    // One at a time is what keeps the order, also while an event is being retried and among several who share a name.
    max_ack_pending: 1,
    max_deliver: -1,
    ...(ephemeral ? { inactive_threshold: nanos(EPHEMERAL_KEPT_MS) } : {}),
  };
}

/** JetStream does not answer, or says that it cannot now. */
function isPassing(e: unknown): boolean {
  const cause = e instanceof NatsError ? e : e instanceof Error ? e.cause : undefined;
  if (!(cause instanceof NatsError)) return false;
  return cause.api_error?.code === 503 || ["503", "TIMEOUT", "DISCONNECT", "CONNECTION_CLOSED"].includes(cause.code);
}

function isNotFound(e: unknown): boolean {
  return e instanceof NatsError && e.api_error?.code === 404;
}
