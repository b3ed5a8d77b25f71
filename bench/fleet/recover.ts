import { setTimeout as sleep } from "node:timers/promises";
import type { Replica } from "../plane/plane.ts";
import type { Drivers } from "./drivers.ts";
import type { Recovery } from "./figures.ts";

/** How often the registry is asked how many devices it is linked to, in milliseconds. */
const LOOK_MS = 250;

/** How long devices may take, in milliseconds. */
const PATIENCE_MS = 180_000;

/** Resolves when the registry is linked to so many devices. Rejects after three minutes, with how many there were. */
export async function linked(replica: Replica, count: number): Promise<void> {
  let seen = 0;
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(LOOK_MS)) {
    seen = (await replica.metrics()).devicesLinked;
    if (seen >= count) return;
  }
  throw new Error(`${seen} of ${count} devices are back after ${PATIENCE_MS} ms`);
}

/** Kills the registry, starts it again, and waits for its devices. */
export async function killAndWait(
  replica: Replica,
  drivers: Drivers,
  count: number,
): Promise<Omit<Recovery, "failedCalls">> {
  const before = await drivers.ask({ kind: "look" });
  const began = performance.now();
  const since = () => performance.now() - began;
  await replica.process.kill();
  await replica.process.start();
  const readyMs = since();
  await linked(replica, Math.ceil(count / 2));
  const halfMs = since();
  await linked(replica, Math.ceil(count * 0.99));
  const most99Ms = since();
  await linked(replica, count);
  const allMs = since();
  const after = await drivers.ask({ kind: "look" });
  return { readyMs, halfMs, most99Ms, allMs, dialsPerDevice: (after.dials - before.dials) / count };
}
