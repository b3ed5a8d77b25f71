import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  type JsMsg,
  type NatsConnection,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
} from "nats";
import { busNotReady, SILENT_LOGGER } from "./bus.ts";
import {
  type ConnectionWatch,
  DEFAULT_TIMEOUT_MS,
  dialNats,
  messageOf,
  type NatsOptions,
  watchConnection,
  whileUp,
} from "./nats-connection.ts";
import { judgeNatsVersion } from "./nats-version.ts";
import { SUBJECT_ROOT } from "./subject.ts";

/**
 * What the bus needs of a NATS connection and its stream. Every request rejects as soon as the connection breaks: the
 * answer cannot come any more.
 */
export interface NatsLink extends ConnectionWatch {
  /** The server's version. */
  version(): string;
  /** What the server does not give, a sentence each. */
  degraded: readonly string[];
  /** Sends at once; resolves when the stream has it. An id that the stream had lately is taken and not stored again. */
  publish(subject: string, data: Uint8Array, id: string): Promise<unknown>;
  /** Makes the stream where it is missing. */
  ensureStream(): Promise<void>;
  /** Which stream it is, and how far it goes. A stream that was made anew has another name for itself. */
  position(): Promise<StreamPosition>;
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

/** Connects, judges the server and makes the stream. Rejects ERROR_REASON_NOT_READY. Once up it reconnects for ever. */
export async function openNatsLink(options: NatsOptions): Promise<NatsLink> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, logger = SILENT_LOGGER } = options;
  const nc = await dialNats(options);
  try {
    const judged = judgeNatsVersion(nc.info?.version ?? "");
    if (judged.kind === "refused") throw busNotReady(judged.message);
    const jsm = await nc.jetstreamManager({ timeout: timeoutMs, checkAPI: false });
    const watch = watchConnection(nc, logger);
    const link = createLink(nc, jsm, { timeoutMs, replicas: options.replicas ?? 1, watch });
    await link.ensureStream();
    return { ...link, ...watch, degraded: judged.degraded };
  } catch (e: unknown) {
    await nc.close();
    throw e;
  }
}

type StreamLink = Omit<NatsLink, keyof ConnectionWatch | "degraded">;

interface LinkOptions {
  timeoutMs: number;
  replicas: number;
  watch: ConnectionWatch;
}

function createLink(
  nc: NatsConnection,
  jsm: JetStreamManager,
  { timeoutMs, replicas, watch }: LinkOptions,
): StreamLink {
  const js = nc.jetstream({ timeout: timeoutMs });
  return {
    version: () => nc.info?.version ?? "",
    publish: (subject, data, id) => whileUp(watch, () => js.publish(subject, data, { msgID: id })),
    ensureStream: () => whileUp(watch, () => ensureStream(jsm, replicas)),
    async position() {
      const { created, state } = await whileUp(watch, () => jsm.streams.info(STREAM));
      return { stream: created, last: state.last_seq };
    },
    ensureConsumer: (consumer) => whileUp(watch, () => ensureConsumer(jsm, consumer)),
    removeConsumer: (name) => whileUp(watch, () => jsm.consumers.delete(STREAM, name)),
    async consume(name) {
      const consumer = await whileUp(watch, () => js.consumers.get(STREAM, name));
      // One iterator for the whole connection: `next` and `fetch` leave a listener behind for every message.
      const messages = await consumer.consume({
        expires: 30_000,
        idle_heartbeat: 5_000,
        abort_on_missing_resource: true,
      });
      return { stop: () => messages.stop(), [Symbol.asyncIterator]: () => readMessages(messages) };
    },
    async close() {
      // The last acknowledgements; they come again if the server is away.
      await whileUp(watch, () => nc.flush()).catch(() => {});
      await nc.close();
    },
  };
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

function isNotFound(e: unknown): boolean {
  return e instanceof NatsError && e.api_error?.code === 404;
}
