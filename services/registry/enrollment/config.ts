import type { ConfigSpec } from "../../../lib/config/config.ts";

/** The settings of enrollment, as a part of the registry's. */
export const enrollmentKeys = {
  publicUrl: {
    name: "REEVE_REGISTRY_PUBLIC_URL",
    type: "string",
    optional: true,
    doc: "Where devices reach the registries, comma-separated: what join tokens say. Unset: the address it listens on.",
  },
  deviceCertTtl: {
    name: "REEVE_DEVICE_CERT_TTL",
    type: "duration",
    min: 1000,
    default: 24 * 3_600_000,
    doc: "How long certificates of devices are good for. Devices renew them at half of it.",
  },
  sealingKeyFile: {
    name: "REEVE_SEALING_KEY_FILE",
    type: "path",
    optional: true,
    doc: "File with 32 bytes as base64 that seal private keys and what calls say in the database; the same for all replicas, and needed with REEVE_REGISTRY_DATABASE_URL. Unset: a file in the state folder.",
  },
} as const satisfies ConfigSpec;
