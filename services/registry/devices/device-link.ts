import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type ControlFrame,
  ControlFrameSchema,
  type DeviceCommand,
  DeviceCommandSchema,
  type DeviceEvent,
  type DeviceFrame,
  type DeviceHello,
  type ExecuteCommand,
  type ExecutionFinished,
  type ExecutionOutput,
  type ReconcileCommand,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { keepLinked } from "../../../lib/link/keep-linked.ts";
import type { StreamFactory } from "../../../lib/link/stream.ts";
import { helloOf, requireNoHello } from "./hello.ts";
import { createOutputFlow, type Followers, followOf, type OutputFlow } from "./output-flow.ts";
import { createShares } from "./shares.ts";

/** The way to a device's end of a link. */
export type DeviceDialer = StreamFactory<ControlFrame, DeviceFrame>;

/** Gets what a tool printed. The promise resolves when its readers have taken it; undefined: nothing waits. */
export type TakeOutput = (output: ExecutionOutput) => Promise<void> | undefined;

/** How a call that was sent to a device came back. */
export type DeviceEnd =
  | { kind: "finished"; finished: ExecutionFinished }
  /** The device could not be reached: the call was never sent, so nothing ran. Why, where more is known than that. */
  | { kind: "offline"; why?: string | undefined }
  /** It was canceled before it was sent: nothing ran. */
  | { kind: "canceled" }
  /** The device went offline after the call was sent and did not come back in time. */
  | { kind: "lost" };

/** The registry's stream to one device. Commands are sent again after a break; the device's ledger makes that safe. */
export interface DeviceLink {
  /** Runs a granted call. Where followers are given, it prints at their pace, or without a pause where there are none. */
  start(start: ExecuteCommand, onOutput: TakeOutput, followers?: Followers): Promise<DeviceEnd>;
  /** Asks how a call ended, and that it never be started after this. Waits for the device for as long as it takes. */
  reconcile(command: ReconcileCommand, onOutput?: TakeOutput, followers?: Followers): Promise<DeviceEnd>;
  /** Kills a running call; its end comes through `start` or `reconcile`. One that was not sent yet never will be. */
  cancel(callId: string): void;
  /**
   * Cancels all that the device runs, for this replica and for others, and sends it nothing more. Resolves when it has
   * reported the ends, after a second at most; callers that wait for the rest get "lost". Lasts until the device is
   * admitted again.
   */
  shutOut(): Promise<void>;
  /** Sends a command that has no answer. Lost where the device is not reached. */
  send(command: DeviceCommand): void;
  /** Whether the device is reached now. */
  readonly isUp: boolean;
  /** The session is gone: no more calls are sent on its stream, which may still report what came before its end. */
  pause(): void;
  /** The same device for another replica: begins with its Hello, and ends when this link goes down. */
  readonly share: DeviceDialer;
  /** Whether a caller waits for something. */
  readonly busy: boolean;
  /** Closes it for good because the device was removed: callers that wait get "lost" or "offline". */
  abandon(): Promise<void>;
  /** Closes it because this process ends: callers that wait get no answer, and the next owner resumes their calls. */
  close(): Promise<void>;
}

/** What a link needs to know. */
export interface DeviceLinkOptions {
  dialer: DeviceDialer;
  /**
   * Gets what the device says of itself at the start of each stream. False: it is not trusted, nothing is sent to it, and
   * its events are dropped. Rejects where that is not known now: the stream ends, and is opened again.
   */
  onHello(hello: DeviceHello): boolean | Promise<boolean>;
  /** What a trusted device is sent before anything else. Default nothing. */
  initialCommands?(hello: DeviceHello): readonly DeviceCommand[];
  onDown?(): void;
  /** More about why the device is not linked, where there is more. */
  whyOffline?(): string | undefined;
  /** The longest wait before the stream is opened again, in milliseconds: 0 for an dialer that waits by itself. Default 1000. */
  maxBackoffMs?: number;
  /** How long a call waits for a device that is not linked, in milliseconds. Default 5000. */
  offlineMs?: number;
  /** How long a sent call waits for a device that went offline, in milliseconds. Default 60000. */
  lostMs?: number;
}

/** How long a device that is shut out has to report the ends of what it ran, in milliseconds. */
const LAST_WORDS_MS = 1000;

/** How often it is looked whether it has. */
const LOOK_MS = 20;

interface Asked {
  onOutput: TakeOutput;
  followers: Followers | undefined;
  /** Reconciling waits for ever: only the device knows. */
  patient: boolean;
}

interface Waiting {
  command: DeviceCommand;
  onOutput: TakeOutput;
  flow: OutputFlow;
  resolve(end: DeviceEnd): void;
  sent: boolean;
  timer: NodeJS.Timeout | undefined;
  /** Reconciling waits for ever: only the device knows. */
  patient: boolean;
  canceled: boolean;
}

/** Holds a stream to a device open. */
export function createDeviceLink(options: DeviceLinkOptions): DeviceLink {
  const { offlineMs = 5000, lostMs = 60_000 } = options;
  /** By call: all who wait for it, since two may ask for the same one. */
  const waiting = new Map<string, Waiting[]>();
  let trusted = false;
  let isPaused = false;
  let closed = false;
  /** Set while the device is shut out; resolves when it has had its time. */
  let shuttingOut: Promise<void> | undefined;

  const link = keepLinked<DeviceCommand, DeviceEvent>({
    async *open(outgoing, signal) {
      let hasHello = false;
      for await (const { events } of options.dialer(requests(outgoing), signal)) {
        if (events.length === 0) continue;
        if (hasHello) {
          requireNoHello(events);
          if (trusted) yield events;
          continue;
        }
        hasHello = true;
        const hello = helloOf(events);
        if (!(await isTrusted(hello, signal))) continue;
        begin(hello);
        yield events.slice(1);
      }
    },
    sizeOf: ({ command }) => (command.case === "execute" ? command.value.arguments.length + 2048 : 256),
    ...(options.maxBackoffMs === undefined ? {} : { maxBackoffMs: options.maxBackoffMs }),
    onDown() {
      if (!trusted) return;
      trusted = false;
      isPaused = false;
      options.onDown?.();
      shares.end();
      for (const [callId, all] of waiting) for (const one of all) giveUpLater(callId, one);
    },
    receive(events) {
      for (const { event } of events) handle(event);
    },
  });

  const shares = createShares((command) => {
    if (shuttingOut === undefined || command.command.case === "cancel") link.send(command);
  });

  const send = (callId: string, one: Waiting) => {
    if (!trusted || isPaused) return;
    clearTimeout(one.timer);
    one.timer = undefined;
    one.sent = true;
    askForOutput(one.command, one.flow.begin());
    link.send(one.command);
    if (one.canceled) link.send(cancelOf(callId));
  };
  const release = (callId: string, one: Waiting, end: DeviceEnd) => {
    clearTimeout(one.timer);
    const others = waiting.get(callId)?.filter((other) => other !== one) ?? [];
    if (others.length > 0) waiting.set(callId, others);
    else waiting.delete(callId);
    one.flow.end();
    one.resolve(end);
  };
  const giveUp = (callId: string, one: Waiting) =>
    release(callId, one, one.sent ? { kind: "lost" } : { kind: "offline", why: options.whyOffline?.() });
  const giveUpLater = (callId: string, one: Waiting) => {
    if (closed || one.patient || one.timer !== undefined) return;
    one.timer = setTimeout(() => giveUp(callId, one), one.sent ? lostMs : offlineMs);
  };
  const finish = (finished: ExecutionFinished) => {
    const all = waiting.get(finished.callId);
    if (all === undefined) return;
    waiting.delete(finished.callId);
    for (const one of all) {
      clearTimeout(one.timer);
      one.flow.end();
      one.resolve({ kind: "finished", finished });
    }
  };
  const isTrusted = async (hello: DeviceHello, signal: AbortSignal): Promise<boolean> => {
    const closing = Promise.withResolvers<false>();
    const close = (): void => closing.resolve(false);
    signal.addEventListener("abort", close, { once: true });
    try {
      return (await Promise.race([options.onHello(hello), closing.promise])) && !signal.aborted;
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
  const begin = (hello: DeviceHello) => {
    trusted = true;
    isPaused = false;
    shuttingOut = undefined;
    for (const command of options.initialCommands?.(hello) ?? []) link.send(command);
    shares.begin(hello);
    for (const [callId, all] of waiting) for (const one of all) send(callId, one);
  };
  const handle = (event: DeviceEvent["event"]) => {
    switch (event.case) {
      case "output":
        for (const one of waiting.get(event.value.callId) ?? [])
          one.flow.received(event.value.data.length, one.onOutput(event.value));
        shares.output(event.value);
        break;
      case "finished":
        finish(event.value);
        shares.finished(event.value);
        break;
      default:
    }
  };
  const giveUpNow = (callId: string, one: Waiting): void =>
    release(callId, one, { kind: one.sent || one.patient ? "lost" : "offline" });
  const endAll = async (): Promise<void> => {
    for (const [callId, all] of waiting) {
      for (const one of all) {
        if (one.sent) one.canceled = true;
        else giveUpNow(callId, one);
      }
      if (trusted && waiting.has(callId)) link.send(cancelOf(callId));
    }
    if (trusted) for (const callId of shares.calls()) link.send(cancelOf(callId));
    const until = performance.now() + LAST_WORDS_MS;
    const isQuiet = () => waiting.size === 0 && shares.calls().next().done === true;
    while (trusted && !isQuiet() && performance.now() < until) await sleep(LOOK_MS);
    for (const [callId, all] of waiting) for (const one of all) giveUpNow(callId, one);
  };
  const close = async () => {
    closed = true;
    trusted = false;
    shares.end();
    for (const all of waiting.values()) {
      for (const one of all) {
        clearTimeout(one.timer);
        one.flow.end();
      }
    }
    waiting.clear();
    await link.close();
  };
  const ask = (callId: string, command: DeviceCommand, { onOutput, followers, patient }: Asked) =>
    new Promise<DeviceEnd>((resolve) => {
      if (shuttingOut !== undefined) {
        resolve({ kind: patient ? "lost" : "offline" });
        return;
      }
      const flow = createOutputFlow(followers, (until) => trusted && link.send(followOf(callId, until)));
      const one: Waiting = {
        command,
        onOutput,
        flow,
        resolve,
        sent: false,
        timer: undefined,
        patient,
        canceled: false,
      };
      const others = waiting.get(callId);
      if (others === undefined) waiting.set(callId, [one]);
      else others.push(one);
      if (trusted && !isPaused) send(callId, one);
      else giveUpLater(callId, one);
    });

  return {
    start: (value, onOutput, followers) =>
      ask(value.callId, create(DeviceCommandSchema, { command: { case: "execute", value } }), {
        onOutput,
        followers,
        patient: false,
      }),
    reconcile: (value, onOutput = () => undefined, followers) =>
      ask(value.callId, create(DeviceCommandSchema, { command: { case: "reconcile", value } }), {
        onOutput,
        followers,
        patient: true,
      }),
    cancel: (callId) => {
      const all = waiting.get(callId);
      if (all === undefined) return;
      for (const one of all) {
        one.canceled = true;
        // Settling is about a call that may have been sent before: the device has to say.
        if (!one.sent && !one.patient) release(callId, one, { kind: "canceled" });
      }
      if (trusted) link.send(cancelOf(callId));
    },
    shutOut: () => (shuttingOut ??= endAll()),
    send: (command) => {
      if (trusted) link.send(command);
    },
    get isUp() {
      return trusted && !isPaused;
    },
    pause() {
      isPaused = trusted;
    },
    share: shares.open,
    get busy() {
      return waiting.size > 0 || shares.size > 0;
    },
    abandon() {
      for (const [callId, all] of waiting) {
        // One that is reconciled may have been sent by an earlier owner.
        for (const one of all) giveUpNow(callId, one);
      }
      return close();
    },
    close,
  };
}

async function* requests(batches: AsyncIterable<DeviceCommand[]>) {
  for await (const commands of batches) yield create(ControlFrameSchema, { commands });
}

/** Says in a command how much of its call's output may be sent. */
function askForOutput({ command }: DeviceCommand, untilBytes: bigint | undefined): void {
  if (untilBytes === undefined || (command.case !== "execute" && command.case !== "reconcile")) return;
  command.value.outputUntilBytes = untilBytes;
}

function cancelOf(callId: string): DeviceCommand {
  return create(DeviceCommandSchema, { command: { case: "cancel", value: { callId } } });
}
