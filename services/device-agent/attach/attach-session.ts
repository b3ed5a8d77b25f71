import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { AttachRequestSchema, AttachService } from "../../../gen/ts/reeve/registry/v1/attach_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { fromDevice } from "../../../lib/link/device-frames.ts";
import { dialFramed } from "../../../lib/link/framed.ts";
import { onTick } from "../../../lib/link/framing/ticker.ts";
import { mapStream } from "../../../lib/link/map-stream.ts";
import type { LinkOpener } from "../../../lib/link/opener.ts";
import type { ServiceTransport } from "../../../lib/serve/client.ts";

/** What one dial needs. Times are milliseconds. */
export interface AttachSessionOptions {
  /** The device's end of the link. */
  end: LinkOpener<LinkRequest, LinkResponse>;
  /** Makes a connection of its own, which the session closes, and says when somebody is there. */
  connect(onConnected: () => void): ServiceTransport;
  heartbeatMs: number;
  /** How long it may take until somebody is there. Where that cannot be told, until the first answer. */
  answerMs: number;
  /** Aborted when the device is going away. */
  draining: AbortSignal;
  /** The control plane has answered. */
  onAnswer(): void;
}

/** One stream that the device opened. */
export interface AttachSession {
  /** Resolves when the control plane says that it is going away. */
  readonly drained: Promise<void>;
  /** Resolves at the end, with what went wrong if anything did. Never rejects. */
  readonly ended: Promise<unknown>;
  /** Hangs up at once. @param why default: the device hangs up. */
  abort(why?: Error): void;
}

/**
 * How long the first answer may take of a control plane that is there, in milliseconds. When a thousand devices come back
 * at once, those that hang up on a busy one only make it do the same again.
 */
const BUSY_MS = 10_000;

/** Dials, and serves the control plane on that stream. */
export function openAttachSession(options: AttachSessionOptions): AttachSession {
  const { heartbeatMs, answerMs, draining } = options;
  const leaving = new AbortController();
  const stopWaiting = afterTicks(answerMs, () => leaving.abort(unanswered(answerMs)));
  const transport = options.connect(stopWaiting);
  const drained = Promise.withResolvers<void>();
  const client = createClient(AttachService, transport);
  let isAnswered = false;
  const wire: LinkOpener<LinkResponse, LinkRequest> = (frames, signal) => {
    const requests = mapStream(frames, (frame) => create(AttachRequestSchema, { frame }));
    return mapStream(client.attach(requests, { signal }), ({ frame }) => {
      if (!isAnswered) {
        stopWaiting();
        options.onAnswer();
      }
      isAnswered = true;
      return frame ?? create(LinkRequestSchema);
    });
  };
  const framing = { heartbeatMs, answerMs: Math.max(answerMs, BUSY_MS), draining, onDrain: drained.resolve };
  const ended = dialFramed(options.end, wire, fromDevice, leaving.signal, framing)
    .then(
      () => undefined,
      (error: unknown) => error ?? new Error("the stream failed without a reason"),
    )
    .finally(() => {
      stopWaiting();
      transport.close();
    });
  return { drained: drained.promise, ended, abort: (why = new Error("the device hangs up")) => leaving.abort(why) };
}

const TICKS = 8;

/** Counts ticks, so that a stall of this process is not taken for the other side's silence. Returns how to stop. */
function afterTicks(ms: number, then: () => void): () => void {
  let ticks = 0;
  const stop = onTick(Math.max(1, Math.round(ms / TICKS)), () => {
    if (++ticks < TICKS) return;
    stop();
    then();
  });
  return stop;
}

function unanswered(ms: number): Error {
  return fault(ErrorReason.NOT_READY, {}, { message: `the registry is silent: nobody was there within ${ms} ms` });
}
