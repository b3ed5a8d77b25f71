import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { describeError } from "../errors/describe-error.ts";
import type { World } from "../world.ts";
import { broken, type Finding, ok } from "./finding.ts";

/** Whether the NATS server that the environment names can be used; nothing where it names none. */
export async function checkNats({ env }: Pick<World, "env">): Promise<Finding[]> {
  const address = env.REEVE_NATS_URL;
  if (address === undefined || address === "") return [];
  try {
    const bus = await createNatsBus({ servers: [address], name: "doctor" });
    const status = bus.status();
    await bus.close();
    return [ok("nats", `${address}, server ${status.kind === "nats" ? status.server : "unknown"}`)];
  } catch (error: unknown) {
    return [
      broken(
        "nats",
        `${address}: ${describeError(error).message}`,
        "events wait in the services' outboxes until it answers",
      ),
    ];
  }
}
