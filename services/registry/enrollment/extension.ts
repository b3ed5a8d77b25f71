import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { KeyringSchema, type SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { ConfigOf } from "../../../lib/config/config.ts";
import { DEFAULT_TRUST_DOMAIN } from "../../../lib/identity/spiffe.ts";
import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { RegistryTables } from "../tables.ts";
import type { enrollmentKeys } from "./config.ts";
import { createEnrollment, type Enrollment } from "./enrollment.ts";
import type { EnrolledFleet, GrantKeys } from "./parts.ts";
import { notRecorded } from "./refusals.ts";

/** What a registry's process knows of its own surroundings. */
export interface ExtensionSettings extends ConfigOf<typeof enrollmentKeys> {
  /** Where the registry listens. */
  host: string;
  port: number;
  /** The server's own TLS files; undefined in cleartext. */
  tls: TlsSource | undefined;
  trustDomain: string;
}

/** What the registry gives its extension. */
export interface ExtensionParts {
  db: Database<RegistryTables>;
  fleet: EnrolledFleet;
  policy: Pick<PolicyLink, "recordIdentity" | "awaitKeyring">;
  logger: Logger;
  now(): number;
}

/** How long policy has to say which keys sign grants, in milliseconds. */
const KEYS_WAIT_MS = 10_000;

/** Opens enrollment as a part of a registry. The sealing key is in the state folder where nothing else is said. */
export function openEnrollment(
  stateDir: string,
  settings: Partial<ExtensionSettings> | undefined,
  { db, fleet, policy, logger, now }: ExtensionParts,
): Promise<Enrollment> {
  const { tls, trustDomain = DEFAULT_TRUST_DOMAIN, deviceCertTtl, sealingKeyFile } = settings ?? {};
  return createEnrollment({
    db,
    fleet,
    tls,
    trustDomain,
    sealingKeyFile: sealingKeyFile ?? join(stateDir, "sealing.key"),
    urls: () => publicUrls(settings ?? {}),
    recordIdentity: (change) => policy.recordIdentity(change),
    grantKeys: () => grantKeysOf(policy),
    ...(deviceCertTtl === undefined ? {} : { certificateTtlMs: deviceCertTtl }),
    logger,
    now,
  });
}

/** Where devices reach the registry: what is configured, else its own address where that is one. */
export function publicUrls({ publicUrl, host = "", port = 0 }: Partial<ExtensionSettings>): string[] {
  if (publicUrl !== undefined) return publicUrl.split(",").map((url) => url.trim().replace(/\/$/, ""));
  const isAddress = port !== 0 && !["", "0.0.0.0", "::"].includes(host);
  return isAddress ? [`https://${host.includes(":") ? `[${host}]` : host}:${port}`] : [];
}

async function grantKeysOf(policy: Pick<PolicyLink, "awaitKeyring">): Promise<GrantKeys> {
  const late = AbortSignal.timeout(KEYS_WAIT_MS);
  const keyrings = await policy.awaitKeyring(0n, late).catch((cause: unknown) => {
    throw late.aborted ? notRecorded(cause) : cause;
  });
  return newestKeys(keyrings);
}

/** The keys of the newest keyring, and its version. Policy is believed here: whom else could one ask. */
export function newestKeys(keyrings: readonly SignedEnvelope[]): GrantKeys {
  const newest = keyrings.at(-1);
  if (newest === undefined) throw new Error("policy has no key that signs grants");
  const { version, publicKeys } = fromBinary(KeyringSchema, newest.payload);
  return { version, keys: publicKeys };
}
