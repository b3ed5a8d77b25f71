import { expect, it, vi } from "vitest";
import { createInProcessBus } from "../../../lib/events/in-process-bus.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { wakeOnEvents } from "./change-feed.ts";
import { approvalRequested } from "./events.ts";

const event = approvalRequested("apr-1", { callId: "c", deviceId: "d", tool: "exec", principalId: "p" }, 0);

it("x", async () => {
  const bus = createInProcessBus();
  const wake = vi.fn();
  const stop = await wakeOnEvents(bus, { wake }, (error) => expect.fail(String(error)));
  await bus.publish([event]);
  await eventually(() => expect(wake).toHaveBeenCalledOnce());
  await stop();
  await bus.close();
});

it("does without a bus that is unavailable", async () => {
  const bus = createInProcessBus();
  await bus.close();
  const onError = vi.fn();
  const unavailable = { ...bus, subscribe: () => Promise.reject(new Error("unavailable")) };
  const stop = await wakeOnEvents(unavailable, { wake: expect.fail }, onError);
  expect(onError).toHaveBeenCalledOnce();
  await stop();
});
