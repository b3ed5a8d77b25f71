import type { KeyObject } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import {
  type JoinRequest,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { verifyJoin } from "../../../lib/identity/join-proof.ts";
import { CertificateRequestError, checkRequest } from "../../../lib/identity/request.ts";
import { verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { checkManifest, labelsOf } from "../devices/manifest.ts";
import { type JoinWhy, joinRefused } from "./refusals.ts";
import { type EnrollmentRow, labelsText, stateAt } from "./store.ts";

/** What a device that shows a token has proved. */
export interface Applicant {
  deviceId: string;
  /** Of its TLS key. */
  fingerprint: string;
  name: string;
  labels: Readonly<Record<string, string>>;
}

/** What comes of a token that was shown. */
export type JoinDecision =
  /** The first key to show it: the token is bound to it from now on. */
  | { kind: "bind" }
  /** The same key again, before an operator has confirmed it. */
  | { kind: "wait" }
  /** The same key again, confirmed: it gets its certificate. */
  | { kind: "certificate" }
  | { kind: "locked" }
  | { kind: "refused"; why: JoinWhy };

/**
 * Checks what a device proves about itself: its manifest is signed by the key behind its id, it holds the key of its
 * certificate request, and both keys are one device's. Throws JOIN_REFUSED.
 */
export async function verifyApplicant(
  request: Pick<JoinRequest, "manifest" | "certificateRequest" | "proof" | "tokenId">,
): Promise<{ applicant: Applicant; publicKey: KeyObject }> {
  const manifest = verifyManifest(request.manifest);
  const { publicKey, fingerprint } = await checkRequest(request.certificateRequest).catch((error: unknown) => {
    throw error instanceof CertificateRequestError ? joinRefused("proof", error.message) : error;
  });
  const key = verifyKeyFromRaw(manifest.publicKey);
  if (!verifyJoin(key, request.tokenId, request.certificateRequest, request.proof)) throw joinRefused("proof");
  const { deviceId, name } = manifest;
  return { applicant: { deviceId, fingerprint, name, labels: labelsOf(manifest) }, publicKey };
}

/** Decides about a token whose secret was right, shown by a device whose proofs are valid. */
export function decideJoin(
  row: Pick<EnrollmentRow, "state" | "expire_ms" | "name" | "labels" | "fingerprint" | "device_id" | "renew_count">,
  applicant: Applicant,
  now: number,
): JoinDecision {
  const isBound = row.fingerprint !== "";
  if (isBound && (row.fingerprint !== applicant.fingerprint || row.device_id !== applicant.deviceId)) {
    return { kind: "refused", why: "used" };
  }
  switch (stateAt(row, now)) {
    case State.EXPIRED:
      return { kind: "refused", why: "expired" };
    case State.LOCKED:
      return { kind: "locked" };
    case State.ENROLLED:
      // A device that has renewed keeps its certificate; only a copy of its first days would still ask.
      return row.renew_count === 0 ? { kind: "certificate" } : { kind: "refused", why: "used" };
    case State.INVITED:
    case State.PENDING:
      break;
    default:
      return { kind: "refused", why: isBound ? "used" : "unknown" };
  }
  if (row.name !== applicant.name || row.labels !== labelsText(applicant.labels))
    return { kind: "refused", why: "name" };
  return isBound ? { kind: "wait" } : { kind: "bind" };
}

function verifyManifest(envelope: SignedEnvelope | undefined): Manifest {
  const name = envelope && nameIn(envelope);
  if (name === undefined) throw joinRefused("key", "the manifest cannot be read");
  const checked = checkManifest(envelope, name, undefined);
  if (!checked.ok) throw joinRefused("key", checked.problem);
  return checked.manifest;
}

/** The name that a manifest states, before anything is known to be signed. */
function nameIn({ payload }: SignedEnvelope): string | undefined {
  try {
    return fromBinary(ManifestSchema, payload).name;
  } catch {
    return undefined;
  }
}
