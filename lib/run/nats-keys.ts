import type { ConfigOf, ConfigSpec } from "../config/config.ts";

/** The settings of a service's process that say where NATS is and how to log in there. */
export const natsKeys = {
  natsUrl: {
    name: "REEVE_NATS_URL",
    type: "string",
    optional: true,
    doc: "NATS servers, such as tls://nats.example:4222, comma-separated. Unset: events stay in the process.",
  },
  natsCredsFile: {
    name: "REEVE_NATS_CREDS_FILE",
    type: "path",
    optional: true,
    doc: "File with a user's JWT and seed, as nsc writes it, not readable by others; read for each connection.",
  },
  natsUser: { name: "REEVE_NATS_USER", type: "string", optional: true, doc: "User at NATS, with a password." },
  natsPasswordFile: {
    name: "REEVE_NATS_PASSWORD_FILE",
    type: "path",
    optional: true,
    doc: "File with the password at NATS, not readable by others; read for each connection.",
  },
  natsCaFile: {
    name: "REEVE_NATS_CA_FILE",
    type: "path",
    optional: true,
    doc: "File with the authorities of the NATS servers' certificates, PEM; turns TLS on. Default: the system's.",
  },
  natsCertFile: {
    name: "REEVE_NATS_CERT_FILE",
    type: "path",
    optional: true,
    doc: "File with the certificate to show NATS, PEM.",
  },
  natsKeyFile: {
    name: "REEVE_NATS_KEY_FILE",
    type: "path",
    optional: true,
    doc: "File with that certificate's private key, PEM, not readable by others; read for each connection.",
  },
  natsAllowPlaintext: {
    name: "REEVE_NATS_ALLOW_PLAINTEXT",
    type: "bool",
    default: false,
    doc: "Allows NATS beyond this machine without TLS, where something else encrypts the way.",
  },
} as const satisfies ConfigSpec;

export type NatsSettings = Partial<ConfigOf<typeof natsKeys>>;
