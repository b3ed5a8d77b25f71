import type { Exit, SpawnRequest } from "./spawner.ts";

/** What the process is called in lists of processes, once it has started. */
export const SPAWNER_TITLE = "reeve spawner";

/** What the agent asks of its spawner process. Descriptors are the agent's own, opened through /proc. */
export interface StartMessage extends Omit<SpawnRequest, "input" | "waits"> {
  id: number;
  /** What the program reads; null for end of file at once. */
  stdin: number | null;
  /** Where it prints; null for nowhere. */
  stdout: number | null;
  stderr: number | null;
}

/** What the spawner process answers: the start or its failure, then the end. */
export type SpawnerMessage =
  | { kind: "started"; id: number; pid: number }
  | { kind: "failed"; id: number; code: string | undefined; message: string }
  | ({ kind: "exited"; id: number } & Exit);
