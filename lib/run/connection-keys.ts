import type { ConfigOf, ConfigSpec } from "../config/config.ts";
import { defaultLimits } from "../server/limits.ts";

/** The settings of a service's process that bound its connections. */
export const connectionKeys = {
  connectionsPerAddress: {
    name: "REEVE_CONNECTIONS_PER_ADDRESS",
    type: "int",
    min: 1,
    max: defaultLimits.maxConnections,
    default: defaultLimits.connectionsPerAddress,
    doc: "Connections of one address on which nothing was authenticated; any one of them goes for the next one. Behind a proxy all callers have one address: raise it there, and limit at the proxy.",
  },
} as const satisfies ConfigSpec;

export type ConnectionSettings = Partial<ConfigOf<typeof connectionKeys>>;
