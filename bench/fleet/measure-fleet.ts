import { setTimeout as sleep } from "node:timers/promises";
import { callFigures, median } from "../measure/figures.ts";
import { type Plane, type Replica, startPlane } from "../plane/plane.ts";
import { type FleetCaller, openFleetCaller } from "./call-fleet.ts";
import { type Drivers, startDrivers } from "./drivers.ts";
import type { FleetFigures } from "./figures.ts";
import { killAndWait, linked } from "./recover.ts";
import type { FleetSettings } from "./settings.ts";

/** How many calls the first device gets before its registry's memory is called that of an empty one. */
const WARM_CALLS = 500;

/**
 * From the last device that attached to a fleet that is idle, in milliseconds: the garbage of their coming is gone by then,
 * and V8 has compiled what ran for it.
 */
const QUIET_MS = 12_000;

/** How often the idle registry is asked for its memory, in milliseconds: to answer costs it as much as a dozen devices do. */
const LOOK_MS = 2000;

/** A fleet of one size, on a control plane of its own. */
export async function measureFleet(count: number, settings: FleetSettings): Promise<FleetFigures> {
  const { onStep } = settings;
  await using parts = new AsyncDisposableStack();
  const names = Array.from({ length: count }, (_, at) => `device-${String(at).padStart(4, "0")}`);
  onStep("starting");
  const plane = parts.adopt(await startPlane({ database: settings.database, env: settings.env }), (one) => one.close());
  const replica = onlyReplica(plane);
  const addresses = { registryUrl: replica.url, ca: plane.ca, operatorToken: plane.tokens.operator };
  const drivers = parts.adopt(await startDrivers(settings.drivers, addresses, names), (one) => one.close());

  // A process that has only been started is no part of what follows.
  await drivers.ask({ kind: "look" });
  onStep("enrolling");
  const enrollMs = await timed(() => drivers.ask({ kind: "enroll" }));
  // A process that has not enrolled anybody, so that only the devices themselves are in its memory.
  await replica.process.stop();
  await replica.process.start();
  const caller = parts.adopt(openFleetCaller(plane, names), (one) => one.close());
  await drivers.attach(1);
  await linked(replica, 1);
  await caller.warm(WARM_CALLS, settings.concurrency);
  const before = await watchIdle(replica, drivers, settings.idleMs / 2);

  onStep("attaching");
  const attachMs = await timed(async () => {
    await drivers.attach(count);
    await linked(replica, count);
  });
  onStep("idle");
  await sleep(QUIET_MS);
  const idle = await watchIdle(replica, drivers, settings.idleMs);
  onStep("calling");
  const called = await call(replica, caller, settings);
  onStep("killing the registry");
  const back = await killAndWait(replica, drivers, count);
  onStep("calling each");
  const failedCalls = await caller.callEach(settings.concurrency);
  const grown = Math.max(0, idle.rssBytes - before.rssBytes);
  return {
    devices: count,
    database: settings.database,
    enrolledPerSecond: (count / enrollMs) * 1000,
    attachMs,
    rssBeforeBytes: before.rssBytes,
    rssIdleBytes: idle.rssBytes,
    rssPerDeviceBytes: grown / Math.max(1, count - 1),
    idleCpu: idle.cpu,
    idleDriversCpu: idle.driversCpu,
    ...called,
    recovery: { ...back, failedCalls },
  };
}

function onlyReplica({ replicas: [replica] }: Plane): Replica {
  if (replica === undefined) throw new Error("there is no registry");
  return replica;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Memory is the median over the time, since garbage comes and goes. */
async function watchIdle(replica: Replica, drivers: Drivers, ms: number) {
  const [first, firstDrivers] = [await replica.metrics(), await drivers.ask({ kind: "look" })];
  const began = performance.now();
  const sizes: number[] = [];
  while (performance.now() - began < ms) {
    await sleep(LOOK_MS);
    sizes.push((await replica.metrics()).rssBytes);
  }
  const [last, lastDrivers] = [await replica.metrics(), await drivers.ask({ kind: "look" })];
  const seconds = (performance.now() - began) / 1000;
  return {
    rssBytes: median(sizes),
    cpu: (last.cpuSeconds - first.cpuSeconds) / seconds,
    driversCpu: (lastDrivers.cpuUs - firstDrivers.cpuUs) / 1e6 / seconds,
  };
}

async function call(replica: Replica, caller: FleetCaller, { callMs, concurrency }: FleetSettings) {
  const before = await replica.metrics();
  const unary = callFigures([await caller.drive("unary", concurrency, callMs)]);
  const after = await replica.metrics();
  const stream = callFigures([await caller.drive("stream", concurrency, callMs)]);
  return {
    unary,
    stream,
    registryUsPerCall: ((after.cpuSeconds - before.cpuSeconds) * 1e6) / Math.max(1, unary.calls),
  };
}
