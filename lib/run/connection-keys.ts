import { configSettings } from "../../gen/settings/settings.ts";
import type { ConfigOf } from "../config/config.ts";

/** The settings of a service's process that bound its connections. */
export const connectionKeys = { connectionsPerAddress: configSettings.connectionsPerAddress };

export type ConnectionSettings = Partial<ConfigOf<typeof connectionKeys>>;
