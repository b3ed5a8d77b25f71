/** What a driver learns when it starts. */
export interface DriverSettings {
  registryUrl: string;
  /** The authority that signed the registry's certificate, PEM. */
  ca: string;
  operatorToken: string;
  /** The devices' names. */
  names: readonly string[];
}

/** What a driver can be asked. Each is answered with a DriverState when it is done. */
export type Question =
  | { kind: "enroll" }
  /** Attaches those that are not, as many as `count` in all. */
  | { kind: "attach"; count: number }
  | { kind: "look" }
  | { kind: "close" };

/** How the devices of one driver stand. */
export interface DriverState {
  /** How many have a stream that the registry has answered. */
  attached: number;
  /** How often they have dialed, all together. */
  dials: number;
  /** Processor time since the driver's start, in microseconds. */
  cpuUs: number;
  rssBytes: number;
}

/** What goes to a driver. */
export type ToDriver = { settings: DriverSettings } | { id: number; question: Question };

/** What comes back. */
export type FromDriver = { id: number; state: DriverState } | { id: number; error: string };
