import type { ToolContext } from "../tool.ts";

export interface RunningProcess {
  pid: number;
  ppid: number;
  uid: number;
  name: string;
  /** The command line as it is, secrets included. Empty for a thread of the kernel. */
  command: string;
  state: string;
  memoryBytes: number;
  cpuMs: number;
  /** When it started, in milliseconds since 1970. With the pid it names one process for ever. */
  startMs: number;
}

/** Where processes are looked up. */
export interface ProcessSource {
  /** All processes that the agent may see, by process id. */
  list(context: ToolContext): Promise<RunningProcess[]>;
  /** One process, or undefined where it is gone. */
  get(context: ToolContext, pid: number): Promise<RunningProcess | undefined>;
}
