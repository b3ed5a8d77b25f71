import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Signed, SignedEnvelope } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type ControlFrame,
  ControlFrameSchema,
  type DeviceCommand,
  DeviceCommandSchema,
  type DeviceEvent,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  LinkResponseSchema,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { errorBytes } from "../fault/error-bytes.ts";
import type { Shape, Shapes } from "./framed.ts";
import { mapStream, type StreamFactory } from "./stream.ts";

/** What the small fields of an item count. Both sides count alike: see Shape.sizeOf. */
const SMALL_BYTES = 256;

/** Commands to a device. */
export const commandShape: Shape<ControlFrame, DeviceCommand> = {
  items: (message) => message.commands,
  framing: (message) => message.framing,
  build(commands, framing) {
    const message = create(ControlFrameSchema);
    message.commands = commands;
    if (framing !== undefined) message.framing = framing;
    return message;
  },
  encode: (command) => toBinary(DeviceCommandSchema, command),
  decode: (bytes) => fromBinary(DeviceCommandSchema, bytes),
  sizeOf({ command }) {
    if (command.case === "execute") return command.value.arguments.length + signedBytes(command.value.grant);
    return command.case === "trustKeyring" ? envelopeBytes(command.value.keyring) : SMALL_BYTES;
  },
  keyOf: ({ command }) => (command.case === "trustKeyring" || command.case === undefined ? "" : command.value.callId),
  isUrgent: ({ command }) => command.case === "cancel",
};

/** Events from a device. */
export const eventShape: Shape<DeviceFrame, DeviceEvent> = {
  items: (message) => message.events,
  framing: (message) => message.framing,
  build(events, framing) {
    const message = create(DeviceFrameSchema);
    message.events = events;
    if (framing !== undefined) message.framing = framing;
    return message;
  },
  encode: (event) => toBinary(DeviceEventSchema, event),
  decode: (bytes) => fromBinary(DeviceEventSchema, bytes),
  sizeOf({ event }) {
    switch (event.case) {
      case "output":
        return event.value.data.length + SMALL_BYTES;
      case "outputRead":
        return event.value.chunks.reduce((sum, { data }) => sum + data.length + SMALL_BYTES, SMALL_BYTES);
      case "finished":
        return (
          event.value.output.length +
          event.value.message.length +
          errorBytes(event.value.error) +
          signedBytes(event.value.receipt)
        );
      case "hello":
        return envelopeBytes(event.value.manifest);
      default:
        return SMALL_BYTES;
    }
  },
  keyOf: ({ event }) => (event.case === "hello" || event.case === undefined ? "" : event.value.callId),
  isUrgent: () => false,
};

/** Both directions as the registry sees them. */
export const toDevice: Shapes<ControlFrame, DeviceFrame> = { out: commandShape, in: eventShape };

/** Both directions as a device sees them. */
export const fromDevice: Shapes<DeviceFrame, ControlFrame> = { out: eventShape, in: commandShape };

/** The frames of the RPC Link, for the side that calls it. */
export function linkFrames(link: StreamFactory<LinkRequest, LinkResponse>): StreamFactory<ControlFrame, DeviceFrame> {
  return (frames, signal) => {
    const requests = mapStream(frames, (frame) => create(LinkRequestSchema, { frame }));
    return mapStream(link(requests, signal), ({ frame }) => frame ?? create(DeviceFrameSchema));
  };
}

/** The RPC Link of a device whose end takes frames. */
export function serveLinkFrames(
  end: StreamFactory<ControlFrame, DeviceFrame>,
): StreamFactory<LinkRequest, LinkResponse> {
  return (requests, signal) => {
    const frames = mapStream(requests, ({ frame }) => frame ?? create(ControlFrameSchema));
    return mapStream(end(frames, signal), (frame) => create(LinkResponseSchema, { frame }));
  };
}

function envelopeBytes(envelope: SignedEnvelope | undefined): number {
  return SMALL_BYTES + (envelope?.payload.length ?? 0);
}

function signedBytes(signed: Signed | undefined): number {
  if (signed === undefined) return SMALL_BYTES;
  let bytes = signed.statement.length + envelopeBytes(signed.head);
  for (const hash of signed.path) bytes += hash.length;
  return bytes;
}
