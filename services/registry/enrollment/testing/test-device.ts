import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type SignedEnvelope, SignedEnvelopeSchema } from "../../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { ManifestSchema } from "../../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { JoinRequestSchema } from "../../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { Peer } from "../../../../lib/auth/peer.ts";
import { deviceIdOf } from "../../../../lib/identity/device-id.ts";
import { fingerprintOf } from "../../../../lib/identity/fingerprint.ts";
import { signJoin } from "../../../../lib/identity/join-proof.ts";
import { parseJoinToken } from "../../../../lib/identity/join-token.ts";
import { createRequest, generateTlsKey } from "../../../../lib/identity/request.ts";
import { signEnvelope } from "../../../../lib/sign/dsse.ts";
import { generateSigningKey, type SigningKey } from "../../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../../lib/sign/payload-types.ts";

/** A machine that wants to be a device, as far as the registry sees it. */
export interface TestDevice {
  id: string;
  key: SigningKey;
  tlsKey: KeyObject;
  fingerprint: string;
  request(): Promise<Uint8Array>;
  /** What it sends for a token; `change` says otherwise than an honest device would. */
  joining(
    token: string,
    change?: MessageInitShape<typeof JoinRequestSchema>,
  ): Promise<MessageInitShape<typeof JoinRequestSchema>>;
}

/** Makes a machine with new keys, or with some of its keys from before. */
export function testDevice(keys: { key?: SigningKey; tlsKey?: KeyObject } = {}): TestDevice {
  const { key = generateSigningKey(), tlsKey = generateTlsKey() } = keys;
  const id = deviceIdOf(key);
  const request = () => createRequest(tlsKey, { kind: "device", id, trustDomain: "reeve" });
  return {
    id,
    key,
    tlsKey,
    fingerprint: fingerprintOf(createPublicKey(tlsKey)),
    request,
    async joining(text, change = {}) {
      const token = parseJoinToken(text);
      const certificateRequest = await request();
      return {
        tokenId: token.id,
        secret: token.secret,
        certificateRequest,
        manifest: testEnvelope(key, token),
        proof: signJoin(key, token.id, certificateRequest),
        ...change,
      };
    },
  };
}

/** A manifest, signed by the key, as the bytes of its envelope. */
export function testManifest(...of: Parameters<typeof testEnvelope>): Uint8Array {
  return toBinary(SignedEnvelopeSchema, testEnvelope(...of));
}

/** A manifest, signed by the key. */
export function testEnvelope(
  key: SigningKey,
  { name, labels = {} }: { name: string; labels?: Readonly<Record<string, string>> },
): SignedEnvelope {
  const list = Object.entries(labels).map(([label, value]) => ({ key: label, value }));
  const manifest = { version: 1, deviceId: deviceIdOf(key), name, labels: list, publicKey: key.raw };
  const payload = toBinary(ManifestSchema, create(ManifestSchema, manifest));
  return signEnvelope(key, MANIFEST_TYPE, payload);
}

/** The peer that shows the first certificate of a chain. */
export function peerWith(chain: string, deviceId: string): Peer & { identity: NonNullable<Peer["identity"]> } {
  const certificate = new X509Certificate(chain);
  return {
    identity: { kind: "device", id: deviceId, trustDomain: "reeve" },
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    serial: certificate.serialNumber,
  };
}
