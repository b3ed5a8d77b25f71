import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
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
  type OutputRead,
  type ReconcileCommand,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { keepLinked } from "../../../lib/link/keep-linked.ts";
import type { StreamFactory } from "../../../lib/link/stream.ts";
import { askForOutput, type CallCommand, cancelOf, followOf } from "./device-commands.ts";
import { createDeviceShares } from "./device-shares.ts";
import { createOutputFlow, type Followers, type OutputFlow } from "./output-flow.ts";
import { createOutputReads, type ReadOutput } from "./output-reads.ts";
import { helloOf, requireNoHello } from "./session.ts";

/** Opens a stream to a device. */
export type DeviceDialer = StreamFactory<ControlFrame, DeviceFrame>;

/** Where a device is reached: its session with this process, or the replica that holds it. */
export interface DeviceRoute {
  /** Compared by identity: a stream with another key than the present route's is on the wrong one. */
  key: unknown;
  dialer: DeviceDialer;
}

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
  /** A part of what a call has printed, running or not. Rejects with DEVICE_OFFLINE where the device does not answer. */
  readOutput(command: ReadOutput): Promise<OutputRead>;
  /** Kills a running call; its end comes through `start` or `reconcile`. One that was not sent yet never will be. */
  cancel(callId: string): void;
  /**
   * Cancels all that the device runs, for this replica and for others, and sends it nothing more. Resolves when it has
   * reported the ends, after 1.8 seconds at most; callers that wait for the rest get "lost". Lasts until the device is
   * admitted again.
   */
  shutOut(): Promise<void>;
  /** Sends a command that has no answer. Lost where the device is not reached. */
  send(command: DeviceCommand): void;
  /** Whether the device is reached now. */
  readonly isUp: boolean;
  /** The session is gone: no more calls are sent on its stream, which may still report what came before its end. */
  pause(): void;
  /** Another route may be the best now. */
  reroute(): void;
  /**
   * The same device for another replica: begins with its Hello, reports the calls that the replica asks for, and ends when
   * this link goes down.
   */
  readonly share: DeviceDialer;
  /** Whether a caller waits for something. */
  readonly busy: boolean;
  /** Closes it for good because the device was removed: callers that wait get "lost" or "offline". */
  abandon(): Promise<void>;
  /** Closes it because this process ends: callers that wait get no answer, and the next owner resumes their calls. */
  close(): Promise<void>;
}

export interface DeviceLinkOptions {
  /** The best route now; undefined while the device is not reached by any. */
  choose(): DeviceRoute | undefined;
  /** Whether a device that begins a stream is trusted. If not, nothing is sent to it, and its events are dropped. */
  onHello(hello: DeviceHello): boolean;
  /** What a trusted device is sent before anything else. Default nothing. */
  initialCommands?(): readonly DeviceCommand[];
  onDown?(): void;
  /** More about why the device is not linked, where there is more. */
  whyOffline?(): string | undefined;
  /** The longest wait before the stream is opened again, in milliseconds. Default 1000. */
  maxBackoffMs?: number;
  /** How long a call waits for a device that is not linked, in milliseconds. Default 5000. */
  offlineMs?: number;
  /** How long a sent call waits for a device that went offline, in milliseconds. Default 60000. */
  lostMs?: number;
}

/** How long a device that is shut out has to report the ends of what it ran, in milliseconds. */
const SHUT_OUT_MS = 1800;

/** How often it is checked whether it has. */
const POLL_MS = 20;

interface Asked {
  onOutput: TakeOutput;
  followers: Followers | undefined;
  resolve(end: DeviceEnd): void;
}

/** Who waits for the end of a call. */
interface Waiter extends Omit<Asked, "followers"> {
  command: DeviceCommand;
  flow: OutputFlow;
  sent: boolean;
  timer: NodeJS.Timeout | undefined;
  /** Reconciling waits for ever: only the device knows. */
  patient: boolean;
  canceled: boolean;
}

/** Holds a stream to a device open. */
export function createDeviceLink(options: DeviceLinkOptions): DeviceLink {
  const { offlineMs = 5000, lostMs = 60_000 } = options;
  /** By call: two may ask for the same one. */
  const waiting = new Map<string, Waiter[]>();
  /** The trusted device's; undefined while the link is down. */
  let hello: DeviceHello | undefined;
  let isPaused = false;
  let closed = false;
  /** Set while the device is shut out; resolves when it has had its time. */
  let shuttingOut: Promise<void> | undefined;
  /** Ends the wait for a route, or the stream on one that is not the best any more. */
  let reconsider: (() => void) | undefined;

  /** Resolves when another route may be the best. */
  const rerouted = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    reconsider = resolve;
    signal.addEventListener("abort", reconsider, { once: true });
    await promise;
    signal.removeEventListener("abort", reconsider);
  };
  const link = keepLinked<DeviceCommand, DeviceEvent>({
    async *open(outgoing, signal) {
      let route = options.choose();
      while (route === undefined && !signal.aborted) {
        await rerouted(signal);
        route = options.choose();
      }
      if (route === undefined || signal.aborted) return;
      const { key, dialer } = route;
      const leaving = new AbortController();
      reconsider = () => {
        if (options.choose()?.key !== key) leaving.abort(new Error("the device is reached by another route now"));
      };
      let hasHello = false;
      for await (const { events } of dialer(requests(outgoing), AbortSignal.any([signal, leaving.signal]))) {
        if (events.length === 0) continue;
        if (hasHello) {
          requireNoHello(events);
          if (hello !== undefined) yield events;
          continue;
        }
        hasHello = true;
        const first = helloOf(events);
        if (signal.aborted || !options.onHello(first)) continue;
        begin(first);
        yield events.slice(1);
      }
    },
    sizeOf: ({ command }) => (command.case === "execute" ? command.value.arguments.length + 2048 : 256),
    ...(options.maxBackoffMs === undefined ? {} : { maxBackoffMs: options.maxBackoffMs }),
    onDown() {
      reconsider = undefined;
      if (hello === undefined) return;
      hello = undefined;
      isPaused = false;
      options.onDown?.();
      shares.endAll(notLinked());
      for (const [callId, all] of waiting) for (const one of all) giveUpLater(callId, one);
    },
    receive(events) {
      for (const { event } of events) {
        if (event.case === "output") {
          for (const one of waiting.get(event.value.callId) ?? [])
            one.flow.received(event.value.data.length, one.onOutput(event.value));
        } else if (event.case === "outputRead") {
          reads.answered(event.value);
        } else if (event.case === "finished") {
          const end: DeviceEnd = { kind: "finished", finished: event.value };
          for (const one of waiting.get(event.value.callId) ?? []) release(event.value.callId, one, end);
        }
      }
    },
  });

  const sendIfUp = (command: DeviceCommand): void => {
    if (hello !== undefined) link.send(command);
  };
  const begin = (first: DeviceHello): void => {
    hello = first;
    isPaused = false;
    shuttingOut = undefined;
    for (const command of options.initialCommands?.() ?? []) link.send(command);
    for (const [callId, all] of waiting) for (const one of all) send(callId, one);
    reads.sendAgain();
  };
  const send = (callId: string, one: Waiter): void => {
    clearTimeout(one.timer);
    one.timer = undefined;
    one.sent = true;
    askForOutput(one.command, one.flow.begin());
    link.send(one.command);
    if (one.canceled) link.send(cancelOf(callId));
  };
  const forget = (callId: string, one: Waiter): void => {
    clearTimeout(one.timer);
    one.flow.end();
    const others = waiting.get(callId)?.filter((other) => other !== one) ?? [];
    if (others.length > 0) waiting.set(callId, others);
    else waiting.delete(callId);
  };
  const release = (callId: string, one: Waiter, end: DeviceEnd): void => {
    forget(callId, one);
    one.resolve(end);
  };
  const giveUpLater = (callId: string, one: Waiter): void => {
    if (closed || one.patient || one.timer !== undefined) return;
    const giveUp = (): void =>
      release(callId, one, one.sent ? { kind: "lost" } : { kind: "offline", why: options.whyOffline?.() });
    one.timer = setTimeout(giveUp, one.sent ? lostMs : offlineMs);
  };
  /** One that is reconciled may have been sent by an earlier owner. */
  const giveUpNow = (callId: string, one: Waiter): void =>
    release(callId, one, { kind: one.sent || one.patient ? "lost" : "offline" });
  const giveUpAll = (): void => {
    for (const [callId, all] of waiting) for (const one of all) giveUpNow(callId, one);
  };
  const endAll = async (): Promise<void> => {
    for (const [callId, all] of waiting) {
      for (const one of all) {
        if (one.sent) one.canceled = true;
        else giveUpNow(callId, one);
      }
      if (waiting.has(callId)) sendIfUp(cancelOf(callId));
    }
    const until = performance.now() + SHUT_OUT_MS;
    while (hello !== undefined && waiting.size > 0 && performance.now() < until) await sleep(POLL_MS);
    giveUpAll();
  };
  const wait = (command: CallCommand, { onOutput, followers, resolve }: Asked): Waiter | undefined => {
    const { callId } = command.value;
    const patient = command.case === "reconcile";
    if (shuttingOut !== undefined) {
      resolve({ kind: patient ? "lost" : "offline" });
      return undefined;
    }
    const one: Waiter = {
      command: create(DeviceCommandSchema, { command }),
      onOutput,
      flow: createOutputFlow(followers, (until) => sendIfUp(followOf(callId, until))),
      resolve,
      sent: false,
      timer: undefined,
      patient,
      canceled: false,
    };
    waiting.set(callId, [...(waiting.get(callId) ?? []), one]);
    if (hello !== undefined && !isPaused) send(callId, one);
    else giveUpLater(callId, one);
    return one;
  };
  const ask = (command: CallCommand, onOutput: TakeOutput, followers: Followers | undefined): Promise<DeviceEnd> =>
    new Promise((resolve) => void wait(command, { onOutput, followers, resolve }));

  const reads = createOutputReads(sendIfUp);
  const shares = createDeviceShares({
    hello() {
      if (hello === undefined) throw notLinked();
      return hello;
    },
    send: sendIfUp,
    readOutput: reads.read,
    wait(command, onOutput, resolve) {
      const one = wait(command, { onOutput, followers: undefined, resolve });
      return one && (() => forget(command.value.callId, one));
    },
  });

  const close = async (): Promise<void> => {
    closed = true;
    hello = undefined;
    shares.endAll(notLinked());
    reads.close();
    for (const [callId, all] of waiting) for (const one of all) forget(callId, one);
    await link.close();
  };

  return {
    start: (value, onOutput, followers) => ask({ case: "execute", value }, onOutput, followers),
    reconcile: (value, onOutput = () => undefined, followers) => ask({ case: "reconcile", value }, onOutput, followers),
    readOutput: reads.read,
    cancel(callId) {
      const all = waiting.get(callId);
      if (all === undefined) return;
      for (const one of all) {
        one.canceled = true;
        // Reconciling is about a call that may have been sent before: the device has to report it.
        if (!one.sent && !one.patient) release(callId, one, { kind: "canceled" });
      }
      sendIfUp(cancelOf(callId));
    },
    shutOut: () => (shuttingOut ??= endAll()),
    send: sendIfUp,
    get isUp() {
      return hello !== undefined && !isPaused;
    },
    pause() {
      isPaused = hello !== undefined;
    },
    reroute() {
      reconsider?.();
      link.hurry();
    },
    share: shares.open,
    get busy() {
      return waiting.size > 0 || shares.size > 0 || reads.size > 0;
    },
    abandon() {
      giveUpAll();
      return close();
    },
    close,
  };
}

async function* requests(batches: AsyncIterable<DeviceCommand[]>) {
  for await (const commands of batches) yield create(ControlFrameSchema, { commands });
}

function notLinked(): Error {
  return fault(ErrorReason.DEVICE_OFFLINE, {}, { message: "the device is not linked to this replica" });
}
