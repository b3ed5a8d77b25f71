import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type ControlFrame,
  type DeviceCommand,
  type DeviceEvent,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  type OutputRead,
  OutputReadSchema,
  type ReadOutputCommand,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { eventShape } from "../../../lib/link/device-frames.ts";
import type { Executions } from "../execute/executions.ts";
import type { Watcher } from "../execute/watcher.ts";
import type { Toolset, Toolsets } from "../toolset.ts";
import { createOutputWindows, type OutputWindows } from "./output-windows.ts";

/** The keys that the device trusts for grants, as links see them. */
export interface GrantTrust {
  /** The active version. */
  version(): bigint;
  /** Trusts a newer version where it follows from this one. Never rejects. */
  follow(keyring: SignedEnvelope | undefined): Promise<void>;
}

/** Output that waits for a link, in bytes, before programs' output is held back: what comes next is not long behind it. */
const HIGH_WATER_BYTES = 256 * 1024;

export interface LinkOptions {
  executions: Executions;
  trust: GrantTrust;
  /** The device's signed manifest, for the first event. */
  toolsets: Pick<Toolsets, "onChange"> & { current(): Pick<Toolset, "manifest"> };
  /** How often the device has dialed, this time included; 0 where it was dialed. */
  attachCount: bigint;
  /** Aborted when the caller has left, or the server ends its streams: the link ends at once. */
  left: AbortSignal;
  /** Aborted when the agent has ended all calls: the link ends after what it still has to report. */
  closed: AbortSignal;
}

/**
 * One link: commands in, events out, any number of links at once. The first event is Hello. A call outlives the link it
 * came on. When the commands end, the link ends after the last call that was asked for on it. When the device's tools change,
 * the link ends, and the next one begins with the new manifest.
 */
export async function* serveLink(
  requests: AsyncIterable<ControlFrame>,
  options: LinkOptions,
): AsyncGenerator<DeviceFrame> {
  const { executions, trust, toolsets, attachCount, left, closed } = options;
  closed.throwIfAborted();
  const queue = createBatchQueue<DeviceEvent>({ sizeOf: eventShape.sizeOf, highWaterBytes: HIGH_WATER_BYTES });
  const asker = createAsker(queue);
  const onLeft = (): void => queue.end(errorOf(left.reason));
  const onClosed = (): void => queue.end();
  left.addEventListener("abort", onLeft, { once: true });
  closed.addEventListener("abort", onClosed, { once: true });
  if (left.aborted) onLeft();
  const stopWatching = toolsets.onChange(onClosed);
  const hello = { manifest: toolsets.current().manifest.envelope, attachCount, keyringVersion: trust.version() };
  queue.push(create(DeviceEventSchema, { event: { case: "hello", value: hello } }));
  void readCommands(requests, asker, { executions, trust }, queue);
  try {
    for await (const events of queue.batches()) yield create(DeviceFrameSchema, { events });
  } finally {
    left.removeEventListener("abort", onLeft);
    closed.removeEventListener("abort", onClosed);
    stopWatching();
    executions.leave(asker.watcher);
    asker.windows.end();
  }
}

async function readCommands(
  requests: AsyncIterable<ControlFrame>,
  asker: Asker,
  obeyed: Pick<LinkOptions, "executions" | "trust">,
  queue: BatchQueue<DeviceEvent>,
): Promise<void> {
  try {
    for await (const request of requests) {
      for (const command of request.commands) {
        // Before anything that comes after it: its grant may be signed by the new key.
        if (command.command.case === "trustKeyring") await obeyed.trust.follow(command.command.value.keyring);
        else obey(command, asker, obeyed.executions);
      }
    }
    asker.endWhenAnswered();
  } catch (error: unknown) {
    // The caller left, or sent what is no command: either way this link is over, and its calls go on.
    queue.end(errorOf(error));
  }
}

function obey({ command }: DeviceCommand, asker: Asker, executions: Executions): void {
  switch (command.case) {
    case "execute":
      asker.windows.ask(command.value.callId, command.value.outputUntilBytes);
      executions.start(command.value, asker.watcher);
      break;
    case "cancel":
      executions.cancel(command.value.callId);
      break;
    case "reconcile":
      asker.windows.ask(command.value.callId, command.value.outputUntilBytes);
      executions.reconcile(command.value, asker.watcher);
      break;
    case "readOutput":
      void readOutput(command.value, asker, executions);
      break;
    case "follow":
      asker.windows.extend(command.value.callId, command.value.outputUntilBytes);
      break;
    default:
    // A command of a newer control plane: it gets no answer, as from a device that lacks it.
  }
}

/** The most bytes that one answer holds, and its context, whatever is asked for. */
const [MAX_READ_BYTES, MAX_CONTEXT_BYTES] = [1024 * 1024, 256 * 1024];

async function readOutput(command: ReadOutputCommand, asker: Asker, executions: Executions): Promise<void> {
  const { callId, readId, fromSequence, maxBytes, contextBytes } = command;
  const range = {
    from: fromSequence,
    maxBytes: Math.min(maxBytes, MAX_READ_BYTES),
    contextBytes: Math.min(contextBytes, MAX_CONTEXT_BYTES),
  };
  // Without a summary: it could not be read.
  const part = await executions.readOutput(callId, range).catch(() => undefined);
  const { chunks = [], next: nextSequence = fromSequence, summary } = part ?? {};
  asker.answer(create(OutputReadSchema, { callId, readId, chunks, nextSequence, ...(summary && { summary }) }));
}

/** One link's side as a watcher, with the windows of the calls that it still waits for. */
interface Asker {
  watcher: Watcher;
  readonly windows: OutputWindows;
  /** Sends what was asked for besides calls. */
  answer(read: OutputRead): void;
  endWhenAnswered(): void;
}

function createAsker(queue: BatchQueue<DeviceEvent>): Asker {
  const windows = createOutputWindows();
  let ending = false;
  const endIfDone = (): void => {
    if (ending && windows.size === 0) queue.end();
  };
  return {
    watcher: {
      follows: windows.follows,
      output(value) {
        windows.sent(value.callId, value.data.length);
        queue.push(create(DeviceEventSchema, { event: { case: "output", value } }));
      },
      room: (callId) => windows.room(callId) ?? queue.room(),
      finished(value) {
        queue.push(create(DeviceEventSchema, { event: { case: "finished", value } }));
        windows.forget(value.callId);
        endIfDone();
      },
      lost(_, error) {
        // A closing agent still reports the ends of its calls on this link. Else the caller has to link and ask again.
        if (reasonOf(error) !== ErrorReason.NOT_READY) queue.end(error);
      },
    },
    windows,
    answer: (value) => queue.push(create(DeviceEventSchema, { event: { case: "outputRead", value } })),
    endWhenAnswered() {
      ending = true;
      endIfDone();
    },
  };
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
