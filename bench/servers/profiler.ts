import { Session } from "node:inspector/promises";

/** Samples the thread's stack, in microseconds. */
const INTERVAL_US = 500;

/** Profiles this process between the messages "profile" and "profiled" of its parent, which gets the profile. */
export function answerProfiles(): void {
  const session = new Session();
  process.on("message", (message) => {
    if (message === "profile") void start(session);
    if (message === "profiled") void stop(session);
  });
}

async function start(session: Session): Promise<void> {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: INTERVAL_US });
  await session.post("Profiler.start");
  process.send?.("profiling");
}

async function stop(session: Session): Promise<void> {
  const { profile } = await session.post("Profiler.stop");
  session.disconnect();
  process.send?.(profile);
}
