import type { ConfigSpec } from "../../lib/config/config.ts";
import { logLevelKey } from "../../lib/run/log-level.ts";

/** What a registry is told when it starts. */
export interface RegistryConfig {
  /** Where its database lives. Made when missing, mode 0700. */
  stateDir: string;
  /** Names of tools that callers may use; empty keeps everything the devices offer. */
  toolsAllowed?: readonly string[];
  /** The device that "this" means. */
  localDevice?: string;
  /** How long to wait for the devices at start, in milliseconds, before calls are taken. Default 3000. */
  startWaitMs?: number;
}

/** The registry's settings in the environment, for `reeve registry`. */
export const registryEnvironment = {
  host: { name: "REEVE_REGISTRY_HOST", type: "string", default: "127.0.0.1", doc: "Address to listen on." },
  port: { name: "REEVE_REGISTRY_PORT", type: "int", min: 0, max: 65535, default: 7400, doc: "Port; 0 takes any." },
  stateDir: { name: "REEVE_REGISTRY_STATE_DIR", type: "path", doc: "Folder of the registry's database." },
  tokensFile: { name: "REEVE_TOKENS_FILE", type: "path", doc: "File with the hashes of the tokens that may call." },
  policyUrl: { name: "REEVE_POLICY_URL", type: "url", default: "http://127.0.0.1:7401", doc: "Where policy listens." },
  serviceToken: {
    name: "REEVE_SERVICE_TOKEN",
    type: "string",
    secret: true,
    doc: "Token with the role service, for policy and the devices.",
  },
  devices: {
    name: "REEVE_DEVICES",
    type: "string",
    default: "this=http://127.0.0.1:7402",
    doc: "The devices to dial: name=url, comma-separated.",
  },
  localDevice: {
    name: "REEVE_LOCAL_DEVICE",
    type: "string",
    optional: true,
    doc: 'The device that the name "this" means.',
  },
  toolsAllowed: {
    name: "REEVE_TOOLS_ALLOWED",
    type: "string",
    default: "",
    doc: "Tools that callers may use, comma-separated. Empty: all that the devices offer.",
  },
  natsUrl: {
    name: "REEVE_NATS_URL",
    type: "string",
    optional: true,
    doc: "NATS server for events. Unset: events stay in the process.",
  },
  logLevel: logLevelKey,
} as const satisfies ConfigSpec;
