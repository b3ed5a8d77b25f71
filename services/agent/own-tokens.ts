import type { ConfigOf } from "../../lib/config/config.ts";
import { ConfigError } from "../../lib/config/config.ts";
import type { EventLogger } from "../../lib/events/bus.ts";
import { secretIn } from "../../lib/run/secret-file.ts";
import type { agentServiceEnvironment } from "./config.ts";
import type { RegistryAccess } from "./registry-clients.ts";

type Settings = Pick<
  ConfigOf<typeof agentServiceEnvironment>,
  "agentToken" | "tokenFile" | "triggerToken" | "triggerTokenFile"
>;

/**
 * As whom the service calls: the tokens of its settings, or those in the files that they name. Throws where it has no token of
 * its own, where a token is given in both ways, and where a file cannot be read or is open to others.
 */
export function ownTokens(settings: Settings, logger: EventLogger): Pick<RegistryAccess, "token" | "triggerToken"> {
  const token = oneOf("REEVE_AGENT_TOKEN", settings.agentToken, settings.tokenFile, logger);
  if (token === undefined) throw new ConfigError(["REEVE_AGENT_TOKEN is not set, and no REEVE_AGENT_TOKEN_FILE"]);
  const triggerToken = oneOf("REEVE_TRIGGER_TOKEN", settings.triggerToken, settings.triggerTokenFile, logger);
  return { token: async () => token(), triggerToken: async () => triggerToken?.() };
}

function oneOf(
  variable: string,
  text: string | undefined,
  file: string | undefined,
  logger: EventLogger,
): (() => string) | undefined {
  if (text !== undefined && file !== undefined) throw new ConfigError([`${variable}_FILE excludes ${variable}`]);
  if (file === undefined) return text === undefined ? undefined : () => text;
  const read = secretIn(file, logger);
  const trimmed = (): string => read().trim();
  if (trimmed() === "") throw new ConfigError([`${variable}_FILE names an empty file`]);
  return trimmed;
}
