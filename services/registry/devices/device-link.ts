import { create } from "@bufbuild/protobuf";
import type { Envelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type Command,
  CommandSchema,
  type Event,
  type Finished,
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  type Output,
  type Settle,
  type Start,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { keepLinked } from "../../../lib/link/keep-linked.ts";
import type { LinkOpener } from "../../../lib/link/opener.ts";

/** The way to a device's end of a link. */
export type DeviceOpener = LinkOpener<LinkRequest, LinkResponse>;

/** How a call that was sent to a device came back. */
export type DeviceEnd =
  | { kind: "finished"; finished: Finished }
  /** The device could not be reached: the call was never sent, so nothing ran. */
  | { kind: "offline" }
  /** The device went away after the call was sent and did not come back in time. */
  | { kind: "lost" };

/** The registry's stream to one device. Commands are sent again after a break; the device's ledger makes that safe. */
export interface DeviceLink {
  /** Runs a granted call. */
  start(start: Start, onOutput: (output: Output) => void): Promise<DeviceEnd>;
  /** Asks how a call ended, and that it never be started after this. Waits for the device for as long as it takes. */
  settle(settle: Settle): Promise<DeviceEnd>;
  /** Kills a running call; its end comes through `start` or `settle`. */
  cancel(callId: string): void;
  close(): Promise<void>;
}

/** What a link needs to know. */
export interface DeviceLinkOptions {
  opener: DeviceOpener;
  /** Gets the manifest that the device shows at the start of each link. False: it is not to be trusted; nothing is sent. */
  onHello(manifest: Envelope | undefined): boolean;
  onDown(): void;
  /** How long a call waits for a device that is not linked, in milliseconds. Default 5000. */
  offlineMs?: number;
  /** How long a sent call waits for a device that went away, in milliseconds. Default 60000. */
  lostMs?: number;
}

interface Waiting {
  command: Command;
  onOutput: (output: Output) => void;
  resolve(end: DeviceEnd): void;
  sent: boolean;
  timer: NodeJS.Timeout | undefined;
  /** Settling waits for ever: only the device knows. */
  patient: boolean;
  cancelled: boolean;
}

/** Holds a stream to a device open. */
export function createDeviceLink(options: DeviceLinkOptions): DeviceLink {
  const { offlineMs = 5000, lostMs = 60_000 } = options;
  const waiting = new Map<string, Waiting>();
  let trusted = false;
  let closed = false;

  const link = keepLinked<Command, Event>({
    async *open(outgoing, signal) {
      for await (const response of options.opener(requests(outgoing), signal)) yield response.events;
    },
    sizeOf: ({ command }) => (command.case === "start" ? command.value.arguments.length + 2048 : 256),
    onDown() {
      if (!trusted) return;
      trusted = false;
      options.onDown();
      for (const [callId, one] of waiting) giveUpLater(callId, one);
    },
    receive(events) {
      for (const { event } of events) handle(event);
    },
  });

  const send = (callId: string, one: Waiting) => {
    if (!trusted) return;
    clearTimeout(one.timer);
    one.timer = undefined;
    one.sent = true;
    link.send(one.command);
    if (one.cancelled) link.send(cancelOf(callId));
  };
  const settleWith = (callId: string, end: DeviceEnd) => {
    const one = waiting.get(callId);
    if (one === undefined) return;
    waiting.delete(callId);
    clearTimeout(one.timer);
    one.resolve(end);
  };
  const giveUpLater = (callId: string, one: Waiting) => {
    if (closed || one.patient || one.timer !== undefined) return;
    const end: DeviceEnd = { kind: one.sent ? "lost" : "offline" };
    one.timer = setTimeout(() => settleWith(callId, end), one.sent ? lostMs : offlineMs);
  };
  const handle = (event: Event["event"]) => {
    switch (event.case) {
      case "hello":
        trusted = options.onHello(event.value.manifest);
        for (const [callId, one] of waiting) send(callId, one);
        break;
      case "output":
        waiting.get(event.value.callId)?.onOutput(event.value);
        break;
      case "finished":
        settleWith(event.value.callId, { kind: "finished", finished: event.value });
        break;
      case undefined:
        break;
    }
  };
  const ask = (callId: string, command: Command, onOutput: (output: Output) => void, patient: boolean) =>
    new Promise<DeviceEnd>((resolve) => {
      const one: Waiting = { command, onOutput, resolve, sent: false, timer: undefined, patient, cancelled: false };
      waiting.set(callId, one);
      if (trusted) send(callId, one);
      else giveUpLater(callId, one);
    });

  return {
    start: (start, onOutput) =>
      ask(start.callId, create(CommandSchema, { command: { case: "start", value: start } }), onOutput, false),
    settle: (settle) =>
      ask(settle.callId, create(CommandSchema, { command: { case: "settle", value: settle } }), () => undefined, true),
    cancel: (callId) => {
      const one = waiting.get(callId);
      if (one === undefined) return;
      one.cancelled = true;
      if (trusted) link.send(cancelOf(callId));
    },
    async close() {
      // What waits is left open: its end is not known here, and the next start takes it up again.
      closed = true;
      trusted = false;
      for (const one of waiting.values()) clearTimeout(one.timer);
      waiting.clear();
      await link.close();
    },
  };
}

async function* requests(batches: AsyncIterable<Command[]>) {
  for await (const commands of batches) yield create(LinkRequestSchema, { commands });
}

function cancelOf(callId: string): Command {
  return create(CommandSchema, { command: { case: "cancel", value: { callId } } });
}
