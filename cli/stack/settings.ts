import { configSettings, deviceSettings } from "../../gen/settings/settings.ts";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { providerKeys } from "../../services/agent/providers/provider-keys.ts";

/** What the commands themselves read from the environment. */
export const commandEnvironment = {
  configFile: {
    name: "REEVE_CONFIG_FILE",
    type: "path",
    optional: true,
    doc: "The configuration file. Default: $XDG_CONFIG_HOME/reeve/config.yaml, else ~/.config/reeve/config.yaml, where it exists.",
  },
  dataDir: configSettings.dataDir,
  registryUrl: configSettings.registryUrl,
  policyUrl: configSettings.policyUrl,
  agentUrl: configSettings.agentUrl,
  token: configSettings.token,
  agentToken: configSettings.agentToken,
  tokensFile: configSettings.tokensFile,
  caFile: configSettings.caFile,
  plugins: deviceSettings.plugins,
  ...natsKeys, // for `reeve doctor`
  ...providerKeys(),
  debug: { name: "REEVE_DEBUG", type: "string", optional: true, doc: "Anything: errors come with their stack." },
  noColor: { name: "NO_COLOR", type: "string", optional: true, doc: "Anything: no colors, on a terminal either." },
} as const satisfies ConfigSpec;
