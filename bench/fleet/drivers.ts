import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { nodeEnv } from "../../testkit/node-env.ts";
import type { DriverSettings, DriverState, FromDriver, Question, ToDriver } from "./driver-messages.ts";

/** The processes that hold the simulated devices. */
export interface Drivers {
  /** Asks all of them the same, and adds up what they answer. */
  ask(question: Question): Promise<DriverState>;
  /** Attaches so many devices in all. */
  attach(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts `count` processes, which share the devices. */
export async function startDrivers(
  count: number,
  settings: Omit<DriverSettings, "names">,
  names: readonly string[],
): Promise<Drivers> {
  const drivers = Array.from({ length: Math.min(count, names.length) }, (_, index, all = count) =>
    startDriver({ ...settings, names: names.filter((__, at) => at % Math.min(all, names.length) === index) }),
  );
  const ask = async (question: Question): Promise<DriverState> =>
    sum(await Promise.all(drivers.map((driver) => driver.ask(question))));
  return {
    ask,
    async attach(total) {
      const share = (index: number) => Math.ceil((total - index) / drivers.length);
      await Promise.all(drivers.map((driver, index) => driver.ask({ kind: "attach", count: share(index) })));
    },
    async close() {
      await Promise.all(drivers.map((driver) => driver.close()));
    },
  };
}

function startDriver(settings: DriverSettings) {
  const child = fork(join(import.meta.dirname, "driver.ts"), { env: { ...process.env, ...nodeEnv() } });
  const waiting = new Map<number, PromiseWithResolvers<DriverState>>();
  let next = 0;
  child.on("message", (message: FromDriver) => {
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if ("error" in message) asked?.reject(new Error(message.error));
    else asked?.resolve(message.state);
  });
  child.once("exit", () => {
    for (const asked of waiting.values()) asked.reject(new Error("a driver has ended"));
  });
  send(child, { settings });
  const ask = (question: Question): Promise<DriverState> => {
    const asked = Promise.withResolvers<DriverState>();
    const id = next++;
    waiting.set(id, asked);
    send(child, { id, question });
    return asked.promise;
  };
  return {
    ask,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      await Promise.race([ask({ kind: "close" }).catch(() => undefined), gone]);
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      await gone;
      clearTimeout(timer);
    },
  };
}

function send(child: ChildProcess, message: ToDriver): void {
  child.send(message);
}

function sum(states: readonly DriverState[]): DriverState {
  const total: DriverState = { attached: 0, dials: 0, cpuUs: 0, rssBytes: 0 };
  for (const state of states) {
    total.attached += state.attached;
    total.dials += state.dials;
    total.cpuUs += state.cpuUs;
    total.rssBytes += state.rssBytes;
  }
  return total;
}
