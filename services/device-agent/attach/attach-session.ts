import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { AttachRequestSchema, AttachService } from "../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import {
  type ControlFrame,
  ControlFrameSchema,
  type DeviceFrame,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fromDevice } from "../../../lib/link/device-frames.ts";
import { dialFramed } from "../../../lib/link/framed.ts";
import { mapStream, type StreamFactory } from "../../../lib/link/stream.ts";
import type { ServiceTransport } from "../../../lib/rpc-client/transport.ts";

/** What one stream needs. Times are milliseconds. */
export interface AttachSessionOptions {
  /** The device's end of the link. */
  end: StreamFactory<ControlFrame, DeviceFrame>;
  /** A connection of its own, which the session closes. */
  transport: ServiceTransport;
  heartbeatMs: number;
  /** How long the first answer may take. */
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

/** Opens a stream, and serves the control plane on it. */
export function openAttachSession(options: AttachSessionOptions): AttachSession {
  const { transport, heartbeatMs, answerMs, draining } = options;
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
  const framing = { heartbeatMs, answerMs, draining, onDrain: drained.resolve };
  const ended = dialFramed(options.end, wire, fromDevice, leaving.signal, framing)
    .then(
      () => undefined,
      (error: unknown) => error ?? new Error("the stream failed without a reason"),
    )
    .finally(transport.close);
  return { drained: drained.promise, ended, abort: (why = new Error("the device hangs up")) => leaving.abort(why) };
}
