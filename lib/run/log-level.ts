import { LEVELS } from "../log/log.ts";

/** The setting of every service's process that says how much it logs. */
export const logLevelKey = {
  name: "REEVE_LOG_LEVEL",
  type: "enum",
  values: LEVELS,
  default: "info",
  doc: "How much is logged.",
} as const;
