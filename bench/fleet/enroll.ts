import type { Client } from "@connectrpc/connect";
import { Mode, SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { EnrollmentService } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { deviceIdOf } from "../../lib/identity/device-id.ts";
import { signJoin } from "../../lib/identity/join-proof.ts";
import { parseJoinToken } from "../../lib/identity/join-token.ts";
import { createRequest, generateTlsKey, tlsKeyToPem } from "../../lib/identity/request.ts";
import { staticTls, type TlsSource } from "../../lib/identity/tls-source.ts";
import { generateSigningKey, type SigningKey, type VerifyKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import { buildManifest, type SealedManifest, sealManifest } from "../../services/device-agent/manifest/manifest.ts";

/** What a machine has once it has become a device. */
export interface Enrolled {
  key: SigningKey;
  manifest: SealedManifest;
  /** Its certificate, and whom it trusts. */
  tls: TlsSource;
  /** The keys that sign grants. */
  grantKeys: readonly VerifyKey[];
}

/** How machines are enrolled. */
export interface EnrollOptions {
  /** As an operator. */
  operator: Client<typeof EnrollmentService>;
  /** As anybody. */
  machine: Client<typeof EnrollmentService>;
  /** The authority that signed the registry's certificate, PEM. */
  ca: string;
}

const LABELS = { fleet: "bench" };

/** Makes a token and joins with it, through the RPCs that people and machines use. */
export async function enroll(name: string, { operator, machine, ca }: EnrollOptions): Promise<Enrolled> {
  const made = await operator.createJoinToken({ name, labels: LABELS, autoConfirm: true });
  const { id: tokenId, secret, domain } = parseJoinToken(made.token);
  const key = generateSigningKey();
  const manifest = sealManifest(key, manifestOf(key, name));
  const tlsKey = generateTlsKey();
  const certificateRequest = await createRequest(tlsKey, { kind: "device", id: deviceIdOf(key), trustDomain: domain });
  const joined = await machine.join({
    tokenId,
    secret,
    certificateRequest,
    manifest: manifest.envelope,
    proof: signJoin(key, tokenId, certificateRequest),
  });
  return {
    key,
    manifest,
    tls: staticTls({ cert: joined.certificateChain, key: tlsKeyToPem(tlsKey), ca }),
    grantKeys: joined.grantKeys.map(verifyKeyFromRaw),
  };
}

function manifestOf(key: SigningKey, name: string) {
  return buildManifest({
    key,
    name,
    labels: LABELS,
    mode: Mode.USER,
    capabilities: ["device.ping"],
    readRoots: [],
    writeRoots: [],
    hosts: [],
    sandbox: SandboxLevel.NONE,
    platform: `${process.platform}/${process.arch}`,
    agentVersion: "bench",
    unavailable: [],
    announced: [],
    issueMs: Date.now(),
  });
}
