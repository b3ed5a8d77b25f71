import { type ConfigLine, type ConfigSpec, describeConfig } from "../../lib/config/config.ts";
import { natsKeys } from "../../lib/run/nats-keys.ts";
import { PROVIDERS } from "../../services/agent/providers/providers.ts";
import { deviceEnvironment, pluginsKey } from "../../services/device-agent/config.ts";
import { policyEnvironment } from "../../services/policy/config.ts";
import { registryEnvironment } from "../../services/registry/config.ts";

/** What the commands themselves read from the environment. */
export const commandEnvironment = {
  dataDir: {
    name: "REEVE_DATA_DIR",
    type: "path",
    optional: true,
    doc: "Folder of everything on this machine. Default: $XDG_DATA_HOME/reeve, else ~/.local/share/reeve.",
  },
  registryUrl: {
    name: "REEVE_REGISTRY_URL",
    type: "url",
    optional: true,
    doc: "The registry's address. Default: the profile's.",
  },
  policyUrl: {
    name: "REEVE_POLICY_URL",
    type: "url",
    optional: true,
    doc: "Policy's address. Default: the profile's.",
  },
  token: {
    name: "REEVE_TOKEN",
    type: "string",
    optional: true,
    secret: true,
    doc: "The caller's token. Default: the profile's.",
  },
  agentToken: {
    name: "REEVE_AGENT_TOKEN",
    type: "string",
    optional: true,
    secret: true,
    doc: "The agent's token that `reeve chat` gives its model. Default: REEVE_TOKEN, else the one that `reeve up` keeps for chat.",
  },
  tokensFile: {
    name: "REEVE_TOKENS_FILE",
    type: "path",
    optional: true,
    doc: "What `reeve token` edits. Default: tokens.json in the data folder.",
  },
  caFile: {
    name: "REEVE_CA_FILE",
    type: "path",
    optional: true,
    doc: "File with the authorities that https addresses are trusted by, PEM. Default: the profile's, else the system's.",
  },
  plugins: pluginsKey,
  ...natsKeys, // for `reeve doctor`
  ...providerKeys(),
  debug: { name: "REEVE_DEBUG", type: "string", optional: true, doc: "Anything: errors come with their stack." },
  noColor: { name: "NO_COLOR", type: "string", optional: true, doc: "Anything: no colors, on a terminal either." },
} as const satisfies ConfigSpec;

/** The settings of every provider of models. */
function providerKeys(): ConfigSpec {
  const settings = PROVIDERS.flatMap(
    ({ keyVariable, urlVariable }) =>
      [
        { name: keyVariable, type: "string", optional: true, secret: true, doc: "For `reeve chat` and `reeve demo`." },
        { name: urlVariable, type: "url", optional: true, doc: "Where the models are. Default: the provider's own." },
      ] as const,
  );
  return Object.fromEntries(settings.map((setting) => [setting.name, setting]));
}

/** Every setting, by what reads it. */
export function allSettings(): { reader: string; settings: ConfigLine[] }[] {
  return [
    { reader: "the commands", settings: describeConfig(commandEnvironment) },
    { reader: "reeve serve registry", settings: describeConfig(registryEnvironment) },
    { reader: "reeve serve policy", settings: describeConfig(policyEnvironment) },
    { reader: "reeve serve device", settings: describeConfig(deviceEnvironment) },
  ];
}
