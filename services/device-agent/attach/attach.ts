import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { fullJitter } from "../../../lib/link/backoff.ts";
import type { StreamFactory } from "../../../lib/link/stream.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { ServiceTransport } from "../../../lib/rpc-client/transport.ts";
import type { AttachCount } from "./attach-count.ts";
import { type AttachSession, openAttachSession } from "./attach-session.ts";
import { hedge } from "./hedge.ts";

/** What attaching needs to know. Times are milliseconds. */
export interface AttachOptions {
  agent: {
    linkAs(attachCount: bigint): StreamFactory<ControlFrame, DeviceFrame>;
    readonly draining: AbortSignal;
    close(): Promise<void>;
  };
  /** The count of dials in the agent's own folder. */
  count: AttachCount;
  /** Where to dial. At least one; each connection takes the next. */
  urls: readonly string[];
  /** Makes a new connection. */
  transportTo(url: string): ServiceTransport;
  logger: Logger;
  /** Calls back when the device's certificate was replaced: the stream is opened anew with it. Default: it never is. */
  onRenewed?(listener: () => void): () => void;
  /** How often the device shows that it lives. Default 1000. */
  heartbeatMs?: number;
  /** The longest wait before a new dial. Default 1000. The first one after an end waits up to 20. */
  maxBackoffMs?: number;
  /** The longest wait where the control plane refuses who the device is. Default 10000. */
  refusedBackoffMs?: number;
  /** Where nobody is there after so long, another connection is tried beside the first. Default 1500. */
  againMs?: number;
  /** How long a registry that is there may take to answer: those who hang up on a busy one only make it do the same again. Default 10000. */
  answerMs?: number;
}

/** A device that holds a stream to the control plane open. */
export interface Attachment {
  /** Whether a stream is open and answered. */
  readonly isAttached: boolean;
  /** Dials no more, closes the agent, lets the streams say the last of it, and hangs up. Safe to repeat. */
  close(): Promise<void>;
}

/** A stream that lived so long was a good one: the next failure is the first again. */
const GOOD_MS = 2000;

/** From the agent's end to the cut of streams that still have something to say. */
const LAST_WORDS_MS = 2000;

/**
 * Dials out and holds one stream open for ever. Any end means: dial again, with full jitter. Where the control plane says
 * that it is going away, the device dials elsewhere at once, and what runs is still told on the old stream.
 */
export function attachAgent(options: AttachOptions): Attachment {
  const { agent, count, urls, transportTo, logger, heartbeatMs = 1000 } = options;
  const { maxBackoffMs = 1000, refusedBackoffMs = 10_000, againMs = 1500, answerMs = 10_000 } = options;
  const closing = new AbortController();
  const sessions = new Set<AttachSession>();
  const answered = new Set<AttachSession>();
  // Where several are named, devices spread over them.
  let next = Math.floor(Math.random() * urls.length);
  let answeredMs = Number.POSITIVE_INFINITY;
  let told: string | undefined;
  /** Ends the wait for a session, not the session. */
  let release = (): void => undefined;

  /** Logs what went wrong, once for each reason: it is tried again and again. */
  const tell = (cause: unknown): void => {
    const text = cause === undefined ? undefined : ConnectError.from(cause).message;
    if (text !== undefined && text !== told) {
      const level = refuses(cause) ? "error" : "warn";
      logger[level]({ registry: urls.join(","), err: cause }, "the device is not attached; trying again");
    }
    told = text;
  };
  const connect = () =>
    hedge(
      () => {
        const url = urls[next++ % urls.length] as string;
        const transport = transportTo(url);
        return { there: transport.connect().then(() => ({ url, transport })), stop: transport.close };
      },
      { againMs, onAgain: () => tell(silent(againMs)), signal: closing.signal },
    );
  const dial = async (): Promise<AttachSession> => {
    const { url, transport } = await connect();
    const attachCount = await count.next().catch((error: unknown) => {
      transport.close();
      throw error;
    });
    const session: AttachSession = openAttachSession({
      end: agent.linkAs(attachCount),
      transport,
      heartbeatMs,
      answerMs,
      draining: agent.draining,
      onAnswer() {
        answeredMs = performance.now();
        answered.add(session);
        logger.info({ registry: url, attach_count: Number(attachCount) }, "attached");
      },
    });
    sessions.add(session);
    void session.ended.then((cause) => {
      sessions.delete(session);
      if (answered.delete(session)) logger.warn({ registry: url, err: cause }, "the stream to the registry ended");
    });
    return session;
  };

  /** Dials once and waits for the end, or for word of it. Resolves with what went wrong. */
  const attend = async (): Promise<unknown> => {
    answeredMs = Number.POSITIVE_INFINITY;
    const session = await dial();
    const over = Promise.withResolvers<unknown>();
    release = () => over.resolve(undefined);
    void session.ended.then(over.resolve);
    void session.drained.then(release);
    if (closing.signal.aborted) release();
    return over.promise;
  };

  const run = async (): Promise<void> => {
    for (let failures = 0; !closing.signal.aborted; ) {
      const cause = await attend().catch((error: unknown) => error);
      if (closing.signal.aborted) return;
      tell(cause);
      failures = performance.now() - answeredMs > GOOD_MS ? 0 : failures + 1;
      const wait = refuses(cause) ? Math.random() * refusedBackoffMs : fullJitter(failures, maxBackoffMs);
      await sleep(wait, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const running = run();
  // The registry ends what the old certificate let in when that expires. What runs is told on the new stream.
  const stopListening = options.onRenewed?.(() => {
    for (const session of sessions) session.abort(new Error("the device dials again with its new certificate"));
  });

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    closing.abort();
    stopListening?.();
    release();
    await agent.close();
    await running;
    const ends = Promise.all([...sessions].map((session) => session.ended));
    const late = new AbortController();
    await Promise.race([ends, sleep(LAST_WORDS_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
    for (const session of sessions) session.abort();
    await ends;
  };
  return {
    get isAttached() {
      return answered.size > 0;
    },
    close: () => (closed ??= close()),
  };
}

function silent(ms: number): Error {
  return fault(ErrorReason.NOT_READY, {}, { message: `the registry is silent: nobody was there within ${ms} ms` });
}

/** True where the control plane knows who this is and will have nothing of it: there is no hurry to ask again. */
function refuses(cause: unknown): boolean {
  if (cause === undefined) return false;
  const { code } = ConnectError.from(cause);
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}
