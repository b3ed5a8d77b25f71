import type { CallFigures } from "../measure/figures.ts";

/** What a fleet of one size costs. */
export interface FleetFigures {
  devices: number;
  database: string;
  /** Machines that became devices, through CreateJoinToken and Join, a second. */
  enrolledPerSecond: number;
  /** From the word to attach until the registry was linked to all. */
  attachMs: number;
  /** The registry's resident memory with one device, which has been called. */
  rssBeforeBytes: number;
  /** And with all, idle. */
  rssIdleBytes: number;
  /** The difference, for each device that came. */
  rssPerDeviceBytes: number;
  /** Processor time of the registry with all devices idle, as a part of one processor. */
  idleCpu: number;
  /** The same for the processes that hold the devices. */
  idleDriversCpu: number;
  /** Calls spread over all devices: one RPC for each, and all on one stream of the caller. */
  unary: CallFigures;
  stream: CallFigures;
  /** Processor time of the registry for a call, in microseconds. */
  registryUsPerCall: number;
  recovery: Recovery;
}

/** After the registry was killed with SIGKILL and started again. Times are from the kill. */
export interface Recovery {
  /** The registry said that it was ready. */
  readyMs: number;
  halfMs: number;
  most99Ms: number;
  allMs: number;
  /** How often a device dialed until all were back, on average. */
  dialsPerDevice: number;
  /** Each device was called once afterwards; so many calls did not succeed. */
  failedCalls: number;
}
