import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  type ControlFrame,
  ControlFrameSchema,
  type DeviceAgentService,
  type DeviceCommandSchema,
  type DeviceEvent,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { linkFrames } from "../../../lib/link/device-frames.ts";

type Case = NonNullable<DeviceEvent["event"]["case"]>;
type ValueOf<C extends Case> = Extract<DeviceEvent["event"], { case: C }>["value"];
type CommandInit = NonNullable<MessageInitShape<typeof DeviceCommandSchema>["command"]>;

/** The control plane's side of one link. */
export interface TestLink {
  send(...commands: CommandInit[]): void;
  /** The next event of that kind; the ones before it are dropped. Rejects where the link ends before it comes. */
  next<C extends Case>(kind: C): Promise<ValueOf<C>>;
  /** Says that no more commands come. */
  end(): void;
  /** Leaves at once. */
  leave(): Promise<void>;
  /** The events that are left, to the end of the link. */
  rest(): Promise<DeviceEvent[]>;
}

export function openTestLink(client: Client<typeof DeviceAgentService>): TestLink {
  const queue = createBatchQueue<ControlFrame>();
  const leaving = new AbortController();
  async function* requests() {
    for await (const batch of queue.batches()) yield* batch;
  }
  const link = linkFrames((messages, signal) => client.link(messages, { signal }));
  const events = flatten(link(requests(), leaving.signal));
  return {
    send(...commands) {
      queue.push(create(ControlFrameSchema, { commands: commands.map((command) => ({ command })) }));
    },
    async next(kind) {
      for (;;) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the link ended before an event ${kind}`);
        if (value.event.case === kind) return value.event.value as ValueOf<typeof kind>;
      }
    },
    end: () => queue.end(),
    async leave() {
      leaving.abort();
      await events.next().catch(() => undefined);
    },
    rest: () => Array.fromAsync(events),
  };
}

async function* flatten(responses: AsyncIterable<{ events: DeviceEvent[] }>): AsyncGenerator<DeviceEvent, void> {
  for await (const { events } of responses) yield* events;
}
