import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type SignedEnvelope, SignedEnvelopeSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type EnvelopeResult, pae, signEnvelope, verifyEnvelope } from "./dsse.ts";
import { createKeyring, generateSigningKey, signBytes } from "./keys.ts";

const TYPE = "application/vnd.reeve.test.v1";
const key = generateSigningKey();
const stranger = generateSigningKey();
const keyring = createKeyring([key]);
const payload = Buffer.from("an exact sequence of bytes");

function signed(): SignedEnvelope {
  return signEnvelope(key, TYPE, payload);
}

describe("pae", () => {
  it("is the example of the DSSE protocol", () => {
    const bytes = pae("http://example.com/HelloWorld", Buffer.from("hello world"));
    expect(Buffer.from(bytes).toString()).toBe("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  });

  it("counts bytes, not characters", () => {
    expect(Buffer.from(pae("é", Buffer.from("ü"))).toString()).toBe("DSSEv1 2 é 2 ü");
  });

  it("differs where the border between type and payload moves", () => {
    expect(pae("a", Buffer.from("b c"))).not.toEqual(pae("a b", Buffer.from("c")));
  });
});

describe("verifyEnvelope", () => {
  it("gives out the payload that a trusted key signed, also after the way over the wire", () => {
    const received = fromBinary(SignedEnvelopeSchema, toBinary(SignedEnvelopeSchema, signed()));
    const result = verifyEnvelope(received, keyring, TYPE);
    expect(result.ok && Buffer.from(result.payload).toString()).toBe(payload.toString());
    expect(result.ok && result.keyId).toBe(key.keyId);
  });

  it("accepts one good signature among those of strangers", () => {
    const envelope = signed();
    envelope.signatures.unshift(...signEnvelope(stranger, TYPE, payload).signatures);
    expect(verifyEnvelope(envelope, keyring, TYPE).ok).toBe(true);
  });

  it("distinguishes an unknown key, a bad signature, another type and a malformed envelope", () => {
    const changed = create(SignedEnvelopeSchema, { ...signed(), payload: Buffer.from("other bytes") });
    const relabeled = create(SignedEnvelopeSchema, { ...signed(), payloadType: `${TYPE}x` });
    const kinds = [
      verifyEnvelope(signEnvelope(stranger, TYPE, payload), keyring, TYPE),
      verifyEnvelope(changed, keyring, TYPE),
      verifyEnvelope(signed(), keyring, `${TYPE}x`),
      verifyEnvelope(relabeled, keyring, `${TYPE}x`),
      verifyEnvelope(undefined, keyring, TYPE),
      verifyEnvelope(create(SignedEnvelopeSchema, { payload, payloadType: TYPE }), keyring, TYPE),
    ].map(kindOf);
    expect(kinds).toEqual(["unknown_key", "bad_signature", "wrong_type", "bad_signature", "malformed", "malformed"]);
  });

  it("does not take a stranger's signature under a trusted key's id", () => {
    const envelope = signEnvelope({ ...stranger, keyId: key.keyId }, TYPE, payload);
    expect(kindOf(verifyEnvelope(envelope, keyring, TYPE))).toBe("bad_signature");
  });

  it("refuses a signature of the payload without its type", () => {
    const bare = { keyId: key.keyId, signature: signBytes(key, payload) };
    const envelope = create(SignedEnvelopeSchema, { payload, payloadType: TYPE, signatures: [bare] });
    expect(kindOf(verifyEnvelope(envelope, keyring, TYPE))).toBe("bad_signature");
  });

  it("refuses more signatures than anyone needs, before checking one", () => {
    const envelope = signed();
    envelope.signatures = Array.from({ length: 9 }, () => signed().signatures).flat();
    expect(kindOf(verifyEnvelope(envelope, keyring, TYPE))).toBe("malformed");
  });

  it("refuses the envelope after any change of any byte that changes the message", () => {
    const envelope = signed();
    const bytes = toBinary(SignedEnvelopeSchema, envelope);
    const accepted: number[] = [];
    bytes.forEach((byte, i) => {
      for (const change of [1, 0x80, 0xff]) {
        const received = decode(Buffer.from(bytes).fill(byte ^ change, i, i + 1));
        // The decoder does not look at wire types, so a few changes to tags give the same message.
        if (!received || equals(SignedEnvelopeSchema, received, envelope)) continue;
        if (verifyEnvelope(received, keyring, TYPE).ok) accepted.push(i);
      }
    });
    expect(accepted).toEqual([]);
  });

  it("refuses every truncation", () => {
    const bytes = toBinary(SignedEnvelopeSchema, signed());
    const accepted = Array.from(bytes.keys()).filter(
      (end) => verifyEnvelope(decode(bytes.slice(0, end)), keyring, TYPE).ok,
    );
    expect(accepted).toEqual([]);
  });
});

function kindOf(result: EnvelopeResult): string {
  return result.ok ? "ok" : result.kind;
}

// What no decoder reads is refused by the transport before it comes here.
function decode(bytes: Uint8Array): SignedEnvelope | undefined {
  try {
    return fromBinary(SignedEnvelopeSchema, bytes);
  } catch {
    return undefined;
  }
}
