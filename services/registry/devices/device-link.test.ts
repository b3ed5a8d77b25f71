import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import {
  ControlFrameSchema,
  type DeviceCommand,
  type DeviceEvent,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  DeviceHelloSchema,
  ExecuteCommandSchema,
  ExecutionFinishedSchema,
  ExecutionOutputSchema,
  ReconcileCommandSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { createDeviceLink, type DeviceDialer, type DeviceLink, type DeviceRoute } from "./device-link.ts";

/** A device that says what a test has it say. */
function puppet() {
  const commands: DeviceCommand["command"][] = [];
  let events = createBatchQueue<DeviceEvent>();
  let ready = Promise.resolve();
  const dialer: DeviceDialer = async function* (requests, signal) {
    await ready;
    const mine = createBatchQueue<DeviceEvent>();
    events = mine;
    signal.addEventListener("abort", () => mine.end(), { once: true });
    mine.push(create(DeviceEventSchema, { event: { case: "hello", value: {} } }));
    void (async () => {
      for await (const request of requests) commands.push(...request.commands.map(({ command }) => command));
    })();
    for await (const batch of mine.batches()) yield create(DeviceFrameSchema, { events: batch });
  };
  return {
    dialer,
    commands,
    say: (event: DeviceEvent["event"]) => events.push(create(DeviceEventSchema, { event })),
    /** Hangs up, and comes back when it may. */
    hangUp(until = Promise.resolve()) {
      ready = until;
      events.end(new Error("gone"));
    },
  };
}

const links: DeviceLink[] = [];
afterEach(async () => {
  for (const link of links.splice(0)) await link.close();
});

async function linkTo(
  device: ReturnType<typeof puppet>,
  options: { lostMs?: number; onDown?: () => void } = {},
): Promise<DeviceLink> {
  const linked = Promise.withResolvers<void>();
  const initialCommands = () => {
    linked.resolve();
    return [];
  };
  const onHello = () => true;
  const link = createDeviceLink({
    choose: () => ({ key: device, dialer: device.dialer }),
    onHello,
    initialCommands,
    onDown: () => undefined,
    ...options,
  });
  links.push(link);
  await linked.promise;
  return link;
}

const start = (callId: string) => create(ExecuteCommandSchema, { callId });
const output = (callId: string) => create(ExecutionOutputSchema, { callId, data: Buffer.from("hi") });
const finished = (callId: string) => create(ExecutionFinishedSchema, { callId, message: "done" });
const kinds = (device: ReturnType<typeof puppet>) => device.commands.map(({ case: kind }) => kind);

test("reports to every caller of the same call", async () => {
  const device = puppet();
  const link = await linkTo(device);
  const printed: string[] = [];
  const first = link.start(start("c"), () => void printed.push("first"));
  const second = link.start(start("c"), () => void printed.push("second"));
  const third = link.reconcile(create(ReconcileCommandSchema, { callId: "c" }), () => void printed.push("third"));
  await eventually(() => expect(kinds(device)).toEqual(["execute", "execute", "reconcile"]));
  device.say({ case: "output", value: output("c") });
  device.say({ case: "finished", value: finished("c") });
  for (const end of await Promise.all([first, second, third])) expect(end).toMatchObject({ kind: "finished" });
  expect(printed).toEqual(["first", "second", "third"]);
  expect(link.busy).toBe(false);
});

test("one who gives up leaves the others waiting", async () => {
  const device = puppet();
  const link = await linkTo(device, { lostMs: 10 });
  const impatient = link.start(start("c"), () => undefined);
  const patient = link.reconcile(create(ReconcileCommandSchema, { callId: "c" }));
  await eventually(() => expect(kinds(device)).toHaveLength(2));
  const back = Promise.withResolvers<void>();
  device.hangUp(back.promise);
  expect(await impatient).toEqual({ kind: "lost" });
  back.resolve();
  await eventually(() => expect(kinds(device)).toHaveLength(3));
  device.say({ case: "finished", value: finished("c") });
  expect(await patient).toMatchObject({ kind: "finished" });
});

test("a call that is canceled before it was sent never is, and one that may have been is asked about", async () => {
  const device = puppet();
  const gone = Promise.withResolvers<void>();
  const link = await linkTo(device, { onDown: gone.resolve });
  const back = Promise.withResolvers<void>();
  const sent = link.start(start("sent"), () => undefined);
  await eventually(() => expect(kinds(device)).toEqual(["execute"]));
  device.hangUp(back.promise);
  await gone.promise;
  const settled = link.reconcile(create(ReconcileCommandSchema, { callId: "old" }));
  const unsent = link.start(start("unsent"), () => undefined);
  for (const callId of ["sent", "old", "unsent"]) link.cancel(callId);
  expect(await unsent).toEqual({ kind: "canceled" });
  back.resolve();
  await eventually(() => expect(kinds(device)).toEqual(["execute", "execute", "cancel", "reconcile", "cancel"]));
  for (const callId of ["sent", "old"]) device.say({ case: "finished", value: finished(callId) });
  for (const end of await Promise.all([sent, settled])) expect(end).toMatchObject({ kind: "finished" });
  expect(link.busy).toBe(false);
});

test("a device that says Hello again is hung up on, and its word does not count", async () => {
  const device = puppet();
  const downs = vi.fn();
  const link = await linkTo(device, { onDown: downs });
  const ended = link.start(start("c"), () => undefined);
  await eventually(() => expect(kinds(device)).toEqual(["execute"]));
  device.say({ case: "hello", value: create(DeviceHelloSchema, { attachCount: 7n }) });
  await eventually(() => expect(downs).toHaveBeenCalledOnce());
  // On a stream of its own it is as good as any other.
  await eventually(() => expect(kinds(device)).toEqual(["execute", "execute"]));
  device.say({ case: "finished", value: finished("c") });
  expect(await ended).toMatchObject({ kind: "finished" });
});

test("a device that is not trusted is sent nothing and not listened to", async () => {
  const device = puppet();
  const asked = Promise.withResolvers<void>();
  const onHello = () => {
    asked.resolve();
    return false;
  };
  const choose = () => ({ key: device, dialer: device.dialer });
  const link = createDeviceLink({ choose, onHello, onDown: () => undefined, offlineMs: 50 });
  links.push(link);
  const ended = link.start(start("c"), () => undefined);
  await asked.promise;
  device.say({ case: "finished", value: finished("c") });
  expect(await ended).toEqual({ kind: "offline", why: undefined });
  expect(kinds(device)).toEqual([]);
});

test("who waits for a device that was removed gets an end, and who waits when the process ends gets none", async () => {
  const device = puppet();
  const link = await linkTo(device);
  const ends = [
    link.start(start("a"), () => undefined),
    link.reconcile(create(ReconcileCommandSchema, { callId: "b" })),
    link.start(start("c"), () => undefined),
  ];
  await link.abandon();
  expect(await Promise.all(ends)).toEqual([{ kind: "lost" }, { kind: "lost" }, { kind: "lost" }]);
  const other = await linkTo(puppet());
  const open = other.start(start("a"), () => undefined);
  await other.close();
  expect(await Promise.race([open, Promise.resolve("open")])).toBe("open");
});

/** Uses a link as another replica does. */
function joinLink(link: DeviceLink, signal = new AbortController().signal) {
  const requests = createBatchQueue<DeviceCommand>();
  const events: DeviceEvent["event"][] = [];
  const over = (async () => {
    const wire = (async function* () {
      for await (const commands of requests.batches()) yield create(ControlFrameSchema, { commands });
    })();
    for await (const response of link.share(wire, signal)) events.push(...response.events.map(({ event }) => event));
  })();
  over.catch(() => undefined);
  const ask = (command: DeviceCommand["command"]) =>
    requests.push({ $typeName: "reeve.device.v1.DeviceCommand", command });
  return { events, over, ask };
}

test("another replica uses the same link: it receives events of the calls it asked for, and of no others", async () => {
  const device = puppet();
  const link = await linkTo(device);
  const own = link.start(start("own"), () => undefined);
  await eventually(() => expect(kinds(device)).toEqual(["execute"]));
  const other = joinLink(link);
  await eventually(() => expect(other.events.map(({ case: kind }) => kind)).toEqual(["hello"]));
  other.ask({ case: "execute", value: start("theirs") });
  other.ask({ case: "trustKeyring", value: { $typeName: "reeve.device.v1.TrustKeyringCommand" } });
  other.ask({ case: "cancel", value: { $typeName: "reeve.device.v1.CancelCommand", callId: "theirs" } });
  // Keys are sent by the replica that holds the session.
  await eventually(() => expect(kinds(device)).toEqual(["execute", "execute", "cancel"]));
  device.say({ case: "output", value: output("own") });
  device.say({ case: "output", value: output("theirs") });
  device.say({ case: "finished", value: finished("own") });
  device.say({ case: "finished", value: finished("theirs") });
  await own;
  await eventually(() => expect(other.events).toHaveLength(3));
  expect(other.events.slice(1)).toMatchObject([
    { case: "output", value: { callId: "theirs" } },
    { case: "finished", value: { callId: "theirs" } },
  ]);
});

test("what another replica has open ends when the device goes offline", async () => {
  const device = puppet();
  const link = await linkTo(device);
  const other = joinLink(link);
  await eventually(() => expect(other.events).toHaveLength(1));
  device.hangUp();
  await expect(other.over).rejects.toThrow("not linked");
});

test("live output that another replica does not take in time is left out, as the numbers show", async () => {
  const device = puppet();
  const link = await linkTo(device);
  const requests = createBatchQueue<DeviceCommand>();
  const wire = (async function* () {
    for await (const commands of requests.batches()) yield create(ControlFrameSchema, { commands });
  })();
  const stream = link.share(wire, new AbortController().signal)[Symbol.asyncIterator]();
  await stream.next();
  requests.push({ $typeName: "reeve.device.v1.DeviceCommand", command: { case: "execute", value: start("c") } });
  await eventually(() => expect(kinds(device)).toEqual(["execute"]));
  const data = new Uint8Array(64 * 1024);
  for (let sequence = 0; sequence < 80; sequence++)
    device.say({ case: "output", value: create(ExecutionOutputSchema, { callId: "c", sequence, data }) });
  // Said on the same stream after all of the above.
  const after = link.start(start("d"), () => undefined);
  device.say({ case: "finished", value: finished("d") });
  await after;
  let bytes = 0;
  while (bytes < 4 * 1024 * 1024) {
    const { value } = await stream.next();
    for (const { event } of value?.events ?? []) bytes += event.case === "output" ? event.value.data.length : 0;
  }
  device.say({ case: "output", value: create(ExecutionOutputSchema, { callId: "c", sequence: 80, data }) });
  const { value } = await stream.next();
  const next = value?.events[0]?.event;
  expect(next?.case === "output" && next.value.sequence).toBe(80);
});

/** A route whose streams stay open until they are left. */
function openRoute(key: string): DeviceRoute & { open: number } {
  const route = {
    key,
    open: 0,
    async *dialer(_: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<DeviceFrame> {
      route.open++;
      yield create(DeviceFrameSchema);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      route.open--;
    },
  };
  return route;
}

function linkAlong(choose: () => DeviceRoute | undefined): DeviceLink {
  const link = createDeviceLink({ choose, onHello: () => true });
  links.push(link);
  return link;
}

test("waits until there is a route, and takes it at once", async () => {
  let route: DeviceRoute | undefined;
  const link = linkAlong(() => route);
  const here = openRoute("here");
  route = here;
  link.reroute();
  await eventually(() => expect(here.open).toBe(1));
  route = undefined;
  link.reroute();
  await eventually(() => expect(here.open).toBe(0));
});

test("leaves a route for a better one, and stays on one that is still the best", async () => {
  const [old, better] = [openRoute("old"), openRoute("better")];
  let best = old;
  const link = linkAlong(() => best);
  await eventually(() => expect(old.open).toBe(1));
  link.reroute();
  expect(old.open).toBe(1);
  best = better;
  link.reroute();
  await eventually(() => expect([old.open, better.open]).toEqual([0, 1]));
  const another = openRoute("yet another");
  best = another;
  link.reroute();
  await eventually(() => expect([better.open, another.open]).toEqual([0, 1]));
});

test("a link that is closed ends, whether there is a route or not", async () => {
  await linkAlong(() => undefined).close();
  const here = openRoute("here");
  const link = linkAlong(() => here);
  await eventually(() => expect(here.open).toBe(1));
  await link.close();
  expect(here.open).toBe(0);
});
