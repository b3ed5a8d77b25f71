import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Target } from "./visit.ts";

/** What hostile clients do. */
export interface Attack {
  seed: number;
  /** How many hostile requests, or sequences of frames, they send at least. */
  mutants: number;
  /** How many of them a second at most. */
  perSecond: number;
  /** Connections at a time. */
  atOnce: number;
  targets: readonly Target[];
  tokens: readonly string[];
  certificates: readonly { cert: string; key: string }[];
  /** Instead of all that: so many connections that are held to the first target. */
  crowd: number;
}

/** What they say of it. */
export type AttackReport =
  | { kind: "progress"; done: Record<string, number> }
  | { kind: "crowd"; connected: number; open: number };

/** How long a crowd stays once all of it is connected, in milliseconds. */
export const CROWD_HOLD_MS = 5_000;

/** Lets them begin. Resolves when the last has left; rejects where they cannot go on. */
export function runAttack(attack: Attack, onReport: (report: AttackReport) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(join(import.meta.dirname, "attacker.ts"), { workerData: attack });
    worker.on("message", onReport);
    worker.once("error", reject);
    worker.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`the attack ended with ${code}`))));
  });
}
