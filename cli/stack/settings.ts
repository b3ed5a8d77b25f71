import { configSettings, deviceSettings } from "../../gen/settings/settings.ts";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { PROVIDERS } from "../../services/agent/providers/providers.ts";

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

/** The settings of every provider of models. */
function providerKeys(): ConfigSpec {
  const settings = PROVIDERS.flatMap(
    ({ name, keyVariable, needsKey, urlVariable, url, toUrl }) =>
      [
        {
          name: keyVariable,
          type: "string",
          optional: true,
          secret: true,
          doc: `The key of models called ${name}/NAME${needsKey ? "." : ", where their server takes one."}`,
        },
        {
          name: urlVariable,
          type: toUrl === undefined ? "url" : "string",
          optional: true,
          doc: `Where models called ${name}/NAME are. Default: ${url}.`,
        },
      ] as const,
  );
  return Object.fromEntries(settings.map((setting) => [setting.name, setting]));
}
