import { readConfig } from "../../lib/config/config.ts";
import { createLogger } from "../../lib/log/log.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { openBus } from "../../lib/run/open-bus.ts";
import type { CommandContext } from "../command-context.ts";
import { describeError } from "../errors/describe-error.ts";
import { broken, type Finding, note, ok } from "./finding.ts";

/** Whether the NATS server that the environment names can be used; nothing where it names none. */
export async function checkNats({ env }: Pick<CommandContext, "env">): Promise<Finding[]> {
  const address = env.REEVE_NATS_URL;
  if (address === undefined || address === "") return [];
  try {
    const logger = createLogger({ service: "doctor", level: "silent" });
    const bus = await openBus(readConfig(natsKeys, env), "doctor", logger);
    const { connected, server, degraded } = bus.status();
    await bus.close();
    if (!connected) return [unusable(address, degraded.join("; "))];
    return [ok("nats", `${address}, server ${server}`), ...degraded.map((sentence) => note("nats", sentence))];
  } catch (error: unknown) {
    return [unusable(address, describeError(error).message)];
  }
}

function unusable(address: string, why: string): Finding {
  return broken("nats", `${address}: ${why}`, "events wait in the services' outboxes until it can be used");
}
