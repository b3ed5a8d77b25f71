/** How the benchmark of a fleet is run. Times are milliseconds. */
export interface FleetSettings {
  database: "sqlite" | "postgres";
  /** Processes that hold the devices. */
  drivers: number;
  /** Calls in flight. */
  concurrency: number;
  /** How long calls are made, once by themselves and once on a caller's stream. */
  callMs: number;
  /** How long memory and processor time are watched while nothing is called. */
  idleMs: number;
  /** More environment for the registry. */
  env: Readonly<Record<string, string>>;
  /** Gets each step in words. */
  onStep(text: string): void;
}
