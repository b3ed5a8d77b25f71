import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ControlFrame,
  type DeviceCommand,
  type DeviceEvent,
  DeviceEventSchema,
  DeviceFrameSchema,
  type DeviceHello,
  type ExecutionFinished,
  type ExecutionOutput,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { eventShape } from "../../../lib/link/device-frames.ts";
import { createOutputRoom } from "../../../lib/link/output-room.ts";
import type { DeviceDialer } from "./device-link.ts";
import { followOf } from "./output-flow.ts";

/** Those who use one device's link besides this replica's own calls: sessions of other replicas. */
export interface Shares {
  /** Joins the link: commands go to the device, and what it says of the calls that were asked for comes back. */
  readonly open: DeviceDialer;
  readonly size: number;
  /** The calls that were asked for and have not ended. */
  calls(): IteratorObject<string>;
  /** The link is up. */
  begin(hello: DeviceHello): void;
  output(output: ExecutionOutput): void;
  finished(finished: ExecutionFinished): void;
  /** The link is down: every stream on it ends, and its reader finds the device where it is next. */
  end(): void;
}

interface Share {
  /** The calls it asked for whose end was not reported yet. */
  calls: Set<string>;
  push(event: DeviceEvent): void;
  print(output: ExecutionOutput): void;
  end(error: Error): void;
}

/** @param send hands a command to the device. */
export function createShares(send: (command: DeviceCommand) => void): Shares {
  const shares = new Set<Share>();
  let hello: DeviceHello | undefined;

  const obey = (share: Share, command: DeviceCommand): void => {
    const { case: kind, value } = command.command;
    // Nothing else: only the replica that holds the session sends the keys that a device is to trust.
    if (kind !== "execute" && kind !== "reconcile" && kind !== "cancel" && kind !== "follow") return;
    if (kind === "execute" || kind === "reconcile") share.calls.add(value.callId);
    if (hello !== undefined) send(command);
  };
  const read = async (share: Share, requests: AsyncIterable<ControlFrame>): Promise<void> => {
    try {
      for await (const { commands } of requests) for (const command of commands) obey(share, command);
    } catch (error: unknown) {
      share.end(error instanceof Error ? error : new Error(String(error)));
    }
  };

  return {
    async *open(requests, signal) {
      if (hello === undefined) throw notLinked();
      const { share, batches } = createShare();
      const leave = () => share.end(new Error("the session ended"));
      signal.addEventListener("abort", leave, { once: true });
      shares.add(share);
      share.push(create(DeviceEventSchema, { event: { case: "hello", value: hello } }));
      void read(share, requests);
      try {
        for await (const events of batches) yield create(DeviceFrameSchema, { events });
      } finally {
        shares.delete(share);
        // It reads no more, and no program may wait for it.
        if (hello !== undefined) for (const callId of share.calls) send(followOf(callId, 0n));
        signal.removeEventListener("abort", leave);
      }
    },
    get size() {
      return shares.size;
    },
    calls: () => shares.values().flatMap(({ calls }) => calls),
    begin(shown) {
      hello = shown;
    },
    output(output) {
      for (const share of shares) if (share.calls.has(output.callId)) share.print(output);
    },
    finished(finished) {
      for (const share of shares) {
        if (share.calls.delete(finished.callId)) {
          share.push(create(DeviceEventSchema, { event: { case: "finished", value: finished } }));
        }
      }
    },
    end() {
      hello = undefined;
      for (const share of shares) share.end(notLinked());
    },
  };
}

function createShare() {
  const queue = createBatchQueue<DeviceEvent>({ sizeOf: eventShape.sizeOf, maxBytes: 256 * 1024 });
  const room = createOutputRoom((output) =>
    queue.push(create(DeviceEventSchema, { event: { case: "output", value: output } })),
  );
  const share: Share = {
    calls: new Set(),
    push(event) {
      if (event.event.case === "finished") room.noteLeftOut(event.event.value.callId);
      queue.push(event);
    },
    print: (output) => void room.print(output),
    end: (error) => queue.end(error),
  };
  async function* batches(): AsyncGenerator<DeviceEvent[], void, void> {
    for await (const batch of queue.batches()) {
      yield batch;
      for (const { event } of batch) if (event.case === "output") room.taken(event.value);
    }
  }
  return { share, batches: batches() };
}

function notLinked(): Error {
  return fault(ErrorReason.DEVICE_OFFLINE, {}, { message: "the device is not linked to this replica" });
}
