import type { DurablePlane } from "./durable-plane.ts";

/** What a durable run depends on, and what may die under it. */
export const PARTS = ["worker", "registry", "policy", "restate"] as const;
export type Part = (typeof PARTS)[number];

/** Kills a part at once, as a crash would. */
export async function kill(plane: DurablePlane, part: Part): Promise<void> {
  if (part !== "restate") return processOf(plane, part).kill();
  const pid = plane.restate.pid();
  try {
    if (pid !== undefined) process.kill(pid, "SIGKILL");
  } catch {
    // Killed a moment ago, and not started again yet.
  }
}

/** Starts it again. Restate's server is started again by the one who keeps it. */
export async function revive(plane: DurablePlane, part: Part): Promise<void> {
  if (part !== "restate") await processOf(plane, part).start();
}

function processOf({ worker, plane }: DurablePlane, part: Exclude<Part, "restate">) {
  return part === "worker" ? worker : plane.processes[part];
}
