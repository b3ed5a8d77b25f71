import type { EventBus } from "../events/bus.ts";
import { createInProcessBus } from "../events/in-process-bus.ts";
import { createNatsBus } from "../events/nats-bus.ts";
import type { Logger } from "../log/log.ts";
import type { NatsSettings } from "./nats-keys.ts";
import { natsOptions } from "./nats-options.ts";

/**
 * The bus that a process is configured for: NATS, or one within the process. What the NATS server does not give is logged,
 * and so is an address where no server answers: then the bus connects when it comes. Rejects NOT_READY where a server answers that cannot
 * be used, and as `natsOptions` throws.
 */
export async function openBus(settings: NatsSettings, name: string, logger: Logger): Promise<EventBus> {
  const options = natsOptions(settings, name, logger);
  if (options === undefined) return createInProcessBus({ logger });
  return createNatsBus(options);
}
