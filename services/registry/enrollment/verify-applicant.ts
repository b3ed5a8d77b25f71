import type { KeyObject } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { JoinRequest } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { verifyJoin } from "../../../lib/identity/join-proof.ts";
import { CertificateRequestError, checkRequest } from "../../../lib/identity/request.ts";
import { verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { checkManifest, labelsOf } from "../devices/manifest.ts";
import type { Applicant } from "./decide-join.ts";
import { joinRefused } from "./refusals.ts";

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
