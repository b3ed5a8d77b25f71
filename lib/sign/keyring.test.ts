import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KeyringSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { signEnvelope } from "./dsse.ts";
import { openKeyringVersion, signKeyring, unverifiedVersion } from "./keyring.ts";
import { createKeyring, generateSigningKey } from "./keys.ts";
import { CHECKPOINT_TYPE, GRANT_TYPE, KEYRING_TYPE, MANIFEST_TYPE } from "./payload-types.ts";

const key = generateSigningKey();
const next = generateSigningKey();
const trusted = createKeyring([key]);

function sealed(fields: { version?: bigint; publicKeys?: Uint8Array[] }, type = KEYRING_TYPE) {
  const whole = { version: 2n, statementType: GRANT_TYPE, publicKeys: [next.raw], ...fields };
  return signEnvelope(key, type, toBinary(KeyringSchema, create(KeyringSchema, whole)));
}

describe("a keyring", () => {
  it("is opened by who trusts its signer, with the keys in their order", () => {
    const envelope = signKeyring(key, { version: 7n, statementType: GRANT_TYPE, keys: [next, key] });
    const opened = openKeyringVersion(envelope, trusted, GRANT_TYPE);
    if (!opened.ok) throw new Error(opened.kind);
    expect(opened.keyring.version).toBe(7n);
    expect(opened.keyring.keys.map(({ keyId }) => keyId)).toEqual([next.keyId, key.keyId]);
    expect(unverifiedVersion(envelope)).toBe(7n);
  });

  it.each([
    [
      "signed by a stranger",
      signKeyring(next, { version: 2n, statementType: GRANT_TYPE, keys: [next] }),
      "unknown_key",
    ],
    [
      "for other statements",
      signKeyring(key, { version: 2n, statementType: CHECKPOINT_TYPE, keys: [next] }),
      "wrong_type",
    ],
    ["signed as something else", sealed({}, MANIFEST_TYPE), "wrong_type"],
    ["without a version", sealed({ version: 0n }), "malformed"],
    ["without a key", sealed({ publicKeys: [] }), "malformed"],
    ["with a malformed key", sealed({ publicKeys: [new Uint8Array(31)] }), "malformed"],
    ["with more keys than there can be", sealed({ publicKeys: Array(17).fill(next.raw) }), "malformed"],
    ["that is no message", signEnvelope(key, KEYRING_TYPE, Uint8Array.of(0xff)), "malformed"],
    ["that is missing", undefined, "malformed"],
  ])("%s is refused", (_, envelope, kind) => {
    expect(openKeyringVersion(envelope, trusted, GRANT_TYPE)).toEqual({ ok: false, kind });
  });
});
