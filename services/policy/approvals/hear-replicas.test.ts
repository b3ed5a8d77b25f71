import { expect, it, vi } from "vitest";
import { createInProcessBus } from "../../../lib/events/in-process-bus.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { approvalRequested } from "../events.ts";
import { hearReplicas } from "./hear-replicas.ts";

const event = approvalRequested("apr-1", { callId: "c", deviceId: "d", tool: "exec", principalId: "p" }, 0);

it("looks when a replica says on the bus that there is news, until it is stopped", async () => {
  const bus = createInProcessBus();
  const look = vi.fn();
  const stop = await hearReplicas(bus, { look }, (error) => expect.fail(String(error)));
  await bus.publish([event]);
  await eventually(() => expect(look).toHaveBeenCalledOnce());
  await stop();
  await bus.close();
});

it("does without a bus that is away", async () => {
  const bus = createInProcessBus();
  await bus.close();
  const onError = vi.fn();
  const away = { ...bus, subscribe: () => Promise.reject(new Error("away")) };
  const stop = await hearReplicas(away, { look: expect.fail }, onError);
  expect(onError).toHaveBeenCalledOnce();
  await stop();
});
