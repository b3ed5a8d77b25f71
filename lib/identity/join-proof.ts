import { type SigningKey, signBytes, type VerifyKey, verifyBytes } from "../sign/keys.ts";

const CONTEXT = "reeve-join-v1";

/** Signs, with the key of the device's manifest, that the TLS key of a certificate request is the same device's. */
export function signJoin(key: SigningKey, tokenId: string, request: Uint8Array): Uint8Array {
  return signBytes(key, statement(tokenId, request));
}

/** True where `proof` was made by signJoin with this key, token and request. */
export function verifyJoin(key: VerifyKey, tokenId: string, request: Uint8Array, proof: Uint8Array): boolean {
  return verifyBytes(key, statement(tokenId, request), proof);
}

function statement(tokenId: string, request: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${CONTEXT}\0${tokenId}\0`), request]);
}
