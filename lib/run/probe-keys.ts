import type { ConfigOf, ConfigSpec } from "../config/config.ts";

/** The settings of a service's process that open a second port, in cleartext, for probes and Prometheus. */
export const probeKeys = {
  probeHost: {
    name: "REEVE_PROBE_HOST",
    type: "string",
    default: "127.0.0.1",
    doc: "Address of the probe port, which serves health and metrics and nothing else.",
  },
  probePort: {
    name: "REEVE_PROBE_PORT",
    type: "int",
    min: 0,
    max: 65535,
    optional: true,
    doc: "Cleartext port for probes and Prometheus; 0 takes any. Unset: none, and /metrics is on the main port.",
  },
} as const satisfies ConfigSpec;

export type ProbeSettings = Partial<ConfigOf<typeof probeKeys>>;
