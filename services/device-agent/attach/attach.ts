import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { AttachRequestSchema, AttachService } from "../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import {
  type ControlFrame,
  ControlFrameSchema,
  type DeviceFrame,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { fullJitter } from "../../../lib/link/backoff.ts";
import { fromDevice } from "../../../lib/link/device-frames.ts";
import { dialFramed } from "../../../lib/link/framed.ts";
import { mapStream, type StreamFactory } from "../../../lib/link/stream.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { ServiceTransport } from "../../../lib/rpc-client/transport.ts";
import type { CountFile } from "../count-file.ts";
import { hedge } from "./hedge.ts";
import { createSpare } from "./spare.ts";

/** What attaching needs to know. Times are milliseconds. */
export interface AttachOptions {
  agent: {
    linkAs(attachCount: bigint): StreamFactory<ControlFrame, DeviceFrame>;
    readonly draining: AbortSignal;
    close(): Promise<void>;
  };
  /** The count of dials in the agent's own folder. */
  count: CountFile;
  /** Where to dial. At least one; each connection takes the next. */
  urls: readonly string[];
  /** Makes a new connection. */
  transportTo(url: string): ServiceTransport;
  logger: Logger;
  /** Calls back when the device's certificate was replaced: the stream is opened anew with it. Default: it never is. */
  onRenewed?(listener: () => void): () => void;
  /** How often the device checks its link. Default 1000. */
  heartbeatMs?: number;
  /** The longest wait before a new dial. Default 1000. The first one after an end waits up to 20. */
  maxBackoffMs?: number;
  /** The longest wait where the control plane refuses who the device is. Default 10000. */
  refusedBackoffMs?: number;
  /** Where there is no connection after a third of it, another one is tried beside the first, and one more; then ever more rarely, at last after so long each. Default 1500. */
  againMs?: number;
  /** How long a registry that is connected may take to answer. To hang up on a busy one only makes it do the same again. Default 10000. */
  answerMs?: number;
}

/** A device that holds a stream to the control plane open. */
export interface Attachment {
  /** Whether a stream is open and answered. */
  readonly isAttached: boolean;
  /** Dials no more, closes the agent, lets the streams send the last of it, and hangs up. Safe to repeat. */
  close(): Promise<void>;
}

/** A stream that lasted so long was no failure: the next one is the first again. */
const GOOD_MS = 2000;

/** From the agent's end to the cut of streams that still have something to send. */
const CLOSE_MS = 2000;

/**
 * Dials out and holds one stream open for ever. Any end means: dial again, with full jitter. Where the control plane says
 * that it drains, the device dials elsewhere at once, and what runs is still reported on the old stream. Where the stream's
 * connection does not answer for a while, another one is tried beside it, and takes its place if that is established first.
 */
export function attachAgent(options: AttachOptions): Attachment {
  const { agent, count, urls, transportTo, logger, heartbeatMs = 1000 } = options;
  const { maxBackoffMs = 1000, refusedBackoffMs = 10_000, againMs = 1500, answerMs = 10_000 } = options;
  const closing = new AbortController();
  const sessions = new Set<AttachSession>();
  const answered = new Set<AttachSession>();
  // Where several are named, devices spread over them.
  let next = Math.floor(Math.random() * urls.length);
  let newest: AttachSession | undefined;
  let answeredMs = Number.POSITIVE_INFINITY;
  let logged: string | undefined;
  /** Ends the wait for a session, not the session. */
  let release = (): void => undefined;

  /** Logs what went wrong, once for each reason: it is tried again and again. */
  const log = (cause: unknown): void => {
    const text = cause === undefined ? undefined : ConnectError.from(cause).message;
    if (text !== undefined && text !== logged) {
      const level = refuses(cause) ? "error" : "warn";
      logger[level]({ registry: urls.join(","), err: cause }, "device not attached; trying again");
    }
    logged = text;
  };
  const connect = () =>
    hedge(
      () => {
        const url = urls[next++ % urls.length] as string;
        const transport = transportTo(url);
        return { ready: transport.connect().then(() => ({ url, transport })), stop: transport.close };
      },
      { againMs, onAgain: () => log(silent()), signal: closing.signal },
    );
  const spare = createSpare({ connect, close: ({ transport }) => transport.close() });
  const dial = async (): Promise<AttachSession> => {
    const { url, transport } = await spare.take();
    const attachCount = await count.next().catch((error: unknown) => {
      transport.close();
      throw error;
    });
    const session: AttachSession = openSession({
      end: agent.linkAs(attachCount),
      transport,
      heartbeatMs,
      answerMs,
      draining: agent.draining,
      onSuspect(isStill) {
        // In cleartext a connection is established before a byte of the registry has come, which proves nothing.
        if (!url.startsWith("https:")) return;
        const isWanted = () => session === newest && isStill();
        spare.prepare(isWanted, () => session.abort(unanswered()));
      },
      onAnswer() {
        answeredMs = performance.now();
        answered.add(session);
        logger.info({ registry: url, attach_count: Number(attachCount) }, "attached");
      },
    });
    newest = session;
    sessions.add(session);
    void session.ended.then((cause) => {
      sessions.delete(session);
      if (answered.delete(session)) logger.warn({ registry: url, err: cause }, "stream to the registry ended");
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
      log(cause);
      failures = performance.now() - answeredMs > GOOD_MS ? 0 : failures + 1;
      const wait = refuses(cause) ? Math.random() * refusedBackoffMs : fullJitter(failures, maxBackoffMs);
      await sleep(wait, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const running = run();
  // The registry ends what the old certificate let in when that expires. What runs is reported on the new stream.
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
    spare.discard();
    const ends = Promise.all([...sessions].map((session) => session.ended));
    const late = new AbortController();
    await Promise.race([ends, sleep(CLOSE_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
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

function silent(): Error {
  return fault(
    ErrorReason.NOT_READY,
    {},
    { message: "the registry is silent: a connection is not established; trying another" },
  );
}

function unanswered(): Error {
  return fault(
    ErrorReason.NOT_READY,
    {},
    { message: "the registry does not answer on this connection, and does on a new one" },
  );
}

/** True where the control plane refuses who this is: there is no hurry to ask again. */
function refuses(cause: unknown): boolean {
  if (cause === undefined) return false;
  const { code } = ConnectError.from(cause);
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}

interface SessionOptions {
  /** The device's end of the link. */
  end: StreamFactory<ControlFrame, DeviceFrame>;
  /** A connection of its own, which the session closes. */
  transport: ServiceTransport;
  heartbeatMs: number;
  /** How long the first answer may take. */
  answerMs: number;
  /** Aborted when the device begins to close. */
  draining: AbortSignal;
  /** The connection does not answer. @param isStill whether it has not since. */
  onSuspect(isStill: () => boolean): void;
  /** The control plane has answered. */
  onAnswer(): void;
}

/** One stream that the device opened. */
interface AttachSession {
  /** Resolves when the control plane says that it drains. */
  readonly drained: Promise<void>;
  /** Resolves at the end, with what went wrong if anything did. Never rejects. */
  readonly ended: Promise<unknown>;
  /** Hangs up at once. @param why default: the device hangs up. */
  abort(why?: Error): void;
}

/** Opens a stream, and serves the control plane on it. */
function openSession(options: SessionOptions): AttachSession {
  const { transport, heartbeatMs, answerMs, draining, onSuspect } = options;
  const leaving = new AbortController();
  const drained = Promise.withResolvers<void>();
  const client = createClient(AttachService, transport);
  let isAnswered = false;
  const wire: StreamFactory<DeviceFrame, ControlFrame> = (frames, signal) => {
    const requests = mapStream(frames, (frame) => create(AttachRequestSchema, { frame }));
    return mapStream(client.attach(requests, { signal }), ({ frame }) => {
      if (!isAnswered) options.onAnswer();
      isAnswered = true;
      return frame ?? create(ControlFrameSchema);
    });
  };
  const framing = { heartbeatMs, pings: transport.pings, answerMs, draining, onSuspect, onDrain: drained.resolve };
  const ended = dialFramed(options.end, wire, fromDevice, leaving.signal, framing)
    .then(
      () => undefined,
      (error: unknown) => error ?? new Error("the stream failed without a reason"),
    )
    .finally(transport.close);
  return { drained: drained.promise, ended, abort: (why = new Error("the device hangs up")) => leaving.abort(why) };
}
