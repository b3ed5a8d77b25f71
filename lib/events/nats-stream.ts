import {
  DiscardPolicy,
  type NatsConnection,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamAPI,
} from "nats";
import { busNotReady, SILENT_LOGGER } from "./bus.ts";
import { DEFAULT_TIMEOUT_MS, messageOf, type NatsOptions, NatsUnreachable } from "./nats-connection.ts";
import { SUBJECT_ROOT } from "./subject.ts";

/** The stream that holds what was published. */
export interface EventStream {
  /** What the server does not give, a sentence each. */
  degraded: readonly string[];
  /** Sends at once; resolves when the stream has it. An id that the stream had lately is taken and not stored again. */
  publish(subject: string, data: Uint8Array, id: string): Promise<unknown>;
  /** Makes the stream where it is missing. */
  ensure(): Promise<void>;
}

export const STREAM = "REEVE_EVENTS";

// The limits of a stream that is made here; an operator may change them afterwards.
const MAX_AGE_MS = 7 * 24 * 3_600_000;
const MAX_BYTES = 1024 ** 3;
const DUPLICATE_WINDOW_MS = 10 * 60_000;

/**
 * Checks the server and makes the stream (subjects "reeve.>", on disk, 7 days, 1 GiB) where it is missing. Rejects
 * ERROR_REASON_NOT_READY for a server that cannot be used, and NatsUnreachable where JetStream is not ready yet.
 */
export async function openStream(nc: NatsConnection, options: NatsOptions): Promise<EventStream> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, logger = SILENT_LOGGER } = options;
  const server = nc.info?.version ?? "";
  const version = checkNatsVersion(server);
  if (version.kind === "refused") throw busNotReady(version.message);
  for (const lack of version.degraded) logger.warn({ server, lack }, "nats server lacks guarantees");
  const jsm = await nc.jetstreamManager({ timeout: timeoutMs, checkAPI: false });
  try {
    await ensureStream(jsm.streams);
  } catch (e: unknown) {
    // As right after its start, and in a cluster that has no leader yet.
    if (nc.info?.jetstream === true && isTransient(e))
      throw new NatsUnreachable("JetStream is not ready yet", { cause: e });
    throw e;
  }
  const js = nc.jetstream({ timeout: timeoutMs });
  return {
    degraded: version.degraded,
    publish: (subject, data, id) => js.publish(subject, data, { msgID: id }),
    ensure: () => ensureStream(jsm.streams),
  };
}

/** Makes the stream where it is missing. Rejects ERROR_REASON_NOT_READY where the server has none and makes none. */
export async function ensureStream(streams: Pick<StreamAPI, "info" | "add">): Promise<void> {
  if (await hasStream(streams)) return;
  try {
    await streams.add({
      name: STREAM,
      subjects: [`${SUBJECT_ROOT}.>`],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      max_age: nanos(MAX_AGE_MS),
      max_bytes: MAX_BYTES,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    });
  } catch (e: unknown) {
    // Of the processes that make it at the same time, a server may refuse some: 2.9 says of one in several hundred that its
    // subjects overlap with those of the stream that it asked for.
    if (await hasStream(streams)) return;
    throw busNotReady(`NATS does not make the stream ${STREAM} for "${SUBJECT_ROOT}.>": ${messageOf(e)}`, e);
  }
}

async function hasStream(streams: Pick<StreamAPI, "info">): Promise<boolean> {
  try {
    await streams.info(STREAM);
    return true;
  } catch (e: unknown) {
    if (e instanceof NatsError && e.api_error?.code === 404) return false;
    throw busNotReady(`NATS does not offer JetStream: ${messageOf(e)}`, e);
  }
}

/** JetStream does not answer, or says that it cannot now. */
function isTransient(e: unknown): boolean {
  const cause = e instanceof NatsError ? e : e instanceof Error ? e.cause : undefined;
  if (!(cause instanceof NatsError)) return false;
  return cause.api_error?.code === 503 || ["503", "TIMEOUT", "DISCONNECT", "CONNECTION_CLOSED"].includes(cause.code);
}

/** What a server's version means for the bus. */
type NatsVersion = { kind: "supported"; degraded: string[] } | { kind: "refused"; message: string };

const LACKS: [since: Version, sentence: string][] = [
  [
    [2, 11, 0],
    "before 2.11 a server flushes acknowledged events to disk every two minutes at best: a power cut loses some",
  ],
  [[2, 12, 7], "before 2.12.7 a server has known authorization flaws: keep it on a private network"],
];

const OLDEST: Version = [2, 9, 0];

type Version = [major: number, minor: number, patch: number];

/** Whether the version that a NATS server reports can be used. Duplicate windows work as needed from 2.9 on. */
export function checkNatsVersion(reported: string): NatsVersion {
  const version = parse(reported);
  if (!version || isBefore(version, OLDEST)) {
    return { kind: "refused", message: `the NATS server's version is "${reported}"; 2.9 or later is needed` };
  }
  return { kind: "supported", degraded: LACKS.filter(([since]) => isBefore(version, since)).map(([, text]) => text) };
}

function parse(text: string): Version | undefined {
  const [, major, minor, patch] = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)];
}

function isBefore(a: Version, b: Version): boolean {
  const i = a.findIndex((part, index) => part !== b[index]);
  return i !== -1 && (a[i] ?? 0) < (b[i] ?? 0);
}
