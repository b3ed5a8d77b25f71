import { natsSettings } from "../../gen/settings/settings.ts";
import type { ConfigOf } from "../config/config.ts";

/** The settings of a service's process that say where NATS is and how to log in there. */
export const natsKeys = natsSettings;

export type NatsSettings = Partial<ConfigOf<typeof natsKeys>>;
