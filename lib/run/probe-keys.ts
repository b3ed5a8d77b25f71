import { probeSettings } from "../../gen/settings/settings.ts";
import type { ConfigOf } from "../config/config.ts";

/** The settings of a service's process that open a second port, in cleartext, for probes and Prometheus. */
export const probeKeys = probeSettings;

export type ProbeSettings = Partial<ConfigOf<typeof probeKeys>>;
