import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import type { EventBus } from "../../lib/events/bus.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import type { Subject } from "./subject.ts";

const YARDSTICK = "events in process";

/** An event of 300 bytes from publish until its one subscriber's handler has it: in the process, and through JetStream. */
export async function eventSubjects(parts: AsyncDisposableStack): Promise<Subject[]> {
  const server = parts.adopt(await startNatsServer(), (one) => one.close());
  const inProcess = parts.adopt(createInProcessBus(), (bus) => bus.close());
  const nats = parts.adopt(await createNatsBus({ servers: [server.url] }), (bus) => bus.close());
  return [
    { name: YARDSTICK, call: await deliveries(inProcess) },
    { name: "events over NATS", against: [YARDSTICK], call: await deliveries(nats) },
  ];
}

async function deliveries(bus: EventBus): Promise<() => Promise<void>> {
  const waiting = new Map<string, () => void>();
  await bus.subscribe({
    subject: "reeve.bench.v1.>",
    handler: async ({ id }) => {
      waiting.get(id)?.();
      waiting.delete(id);
    },
  });
  const payload = new Uint8Array(200);
  return async () => {
    const id = randomUUID();
    const delivered = new Promise<void>((resolve) => waiting.set(id, resolve));
    const envelope = create(EventEnvelopeSchema, {
      id,
      subject: "reeve.bench.v1.noted.a",
      type: "reeve.bench.v1.Noted",
      payload,
    });
    await bus.publish([envelope]);
    await delivered;
  };
}
