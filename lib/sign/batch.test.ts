import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type BatchHead,
  BatchHeadSchema,
  SignatureSchema,
  type Signed,
  SignedEnvelopeSchema,
  SignedSchema,
} from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { EMPTY_ROOT, leafHash } from "../merkle/hash.ts";
import { BATCH_HEAD_TYPE, createBatchSigner, MAX_BATCH } from "./batch.ts";
import { createBatchVerifier, type StatementResult } from "./batch-verifier.ts";
import { signEnvelope } from "./dsse.ts";
import { createKeyring, generateSigningKey, type VerifyKey } from "./keys.ts";

const TYPE = "application/vnd.reeve.test.v1";
const key = generateSigningKey();
const stranger = generateSigningKey();
const keyring = createKeyring([key]);
const statements = ["one", "two", "three", "four", "five"].map((text) => Buffer.from(text));

async function batchOf(contents: readonly Uint8Array[], statementType = TYPE, signer = key): Promise<Signed[]> {
  const { sign } = createBatchSigner({ key: signer, statementType });
  return Promise.all(contents.map((content) => sign(content)));
}

async function one(): Promise<Signed> {
  return (await batchOf(statements.slice(0, 1)))[0] ?? expect.fail("nothing was signed");
}

function verifier() {
  return createBatchVerifier({ keyring, statementType: TYPE });
}

function kindOf(result: StatementResult): string {
  return result.ok ? "ok" : result.kind;
}

// A copy with other content, as it would come over the wire.
function changed(signed: Signed, fields: Partial<Signed>): Signed {
  return create(SignedSchema, { ...signed, ...fields });
}

function under(fields: Partial<BatchHead>, payload = toBinary(BatchHeadSchema, headOf(fields))): Signed {
  const statement = statements[0] ?? new Uint8Array();
  return create(SignedSchema, { statement, index: 0, path: [], head: signEnvelope(key, BATCH_HEAD_TYPE, payload) });
}

function headOf(fields: Partial<BatchHead>): BatchHead {
  const root = leafHash(statements[0] ?? new Uint8Array());
  return create(BatchHeadSchema, { statementType: TYPE, size: 1, root, ...fields });
}

describe("createBatchSigner", () => {
  it("signs what comes in one turn of the event loop once", async () => {
    const { sign } = createBatchSigner({ key, statementType: TYPE });
    const early = sign(statements[0] ?? EMPTY_ROOT);
    await Promise.resolve();
    const signed = await Promise.all([early, ...statements.slice(1).map(sign)]);
    expect(new Set(signed.map(({ head }) => head)).size).toBe(1);
    expect(signed.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
    expect(signed.map((s) => kindOf(verifier().verify(s)))).toEqual(Array(5).fill("ok"));
  });

  it("signs a statement that comes alone with an empty path", async () => {
    const signed = await one();
    expect([signed.index, signed.path.length]).toEqual([0, 0]);
    expect(kindOf(verifier().verify(signed))).toBe("ok");
  });

  it("starts a new batch in the next turn and where a batch is full", async () => {
    const { sign } = createBatchSigner({ key, statementType: TYPE, maxBatch: 2 });
    const signed = await Promise.all(statements.map(sign));
    const later = await sign(EMPTY_ROOT);
    expect([...signed, later].map(({ index }) => index)).toEqual([0, 1, 0, 1, 0, 0]);
    expect(new Set([...signed, later].map(({ head }) => head)).size).toBe(4);
  });

  it("signs the largest batch so that each statement verifies", async () => {
    const contents = Array.from({ length: MAX_BATCH }, (_, i) => Buffer.from(`statement ${i}`));
    const signed = await batchOf(contents);
    const { verify } = verifier();
    expect(signed.every((s) => verify(s).ok && s.path.length === 10)).toBe(true);
  });

  it("rejects every statement of a batch that cannot be signed, and goes on", async () => {
    const broken = { ...key, privateKey: key.keyObject };
    const { sign } = createBatchSigner({ key: broken, statementType: TYPE });
    const results = await Promise.allSettled(statements.map(sign));
    expect(results.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
    await expect(sign(EMPTY_ROOT)).rejects.toThrow();
  });

  it("refuses batch sizes that a verifier would refuse", () => {
    for (const maxBatch of [0, -1, Number.NaN, MAX_BATCH + 1]) {
      expect(() => createBatchSigner({ key, statementType: TYPE, maxBatch })).toThrow(RangeError);
    }
  });
});

describe("createBatchVerifier", () => {
  it("gives out exactly the signed bytes and the key's id, after the way over the wire", async () => {
    for (const signed of await batchOf(statements)) {
      const received = fromBinary(SignedSchema, toBinary(SignedSchema, signed));
      const result = verifier().verify(received);
      expect(result.ok && Buffer.from(result.statement).toString()).toBe(Buffer.from(signed.statement).toString());
      expect(result.ok && result.keyId).toBe(key.keyId);
    }
  });

  it("refuses a statement that is not in the batch, or is at another place", async () => {
    const [first, second] = await batchOf(statements);
    const { verify } = verifier();
    if (!first || !second) return expect.fail("nothing was signed");
    expect(kindOf(verify(changed(first, { statement: Buffer.from("uno") })))).toBe("bad_signature");
    expect(kindOf(verify(changed(first, { statement: second.statement })))).toBe("bad_signature");
    expect(kindOf(verify(changed(first, { index: 1 })))).toBe("bad_signature");
    expect(kindOf(verify(changed(first, { path: first.path.slice(1) })))).toBe("bad_signature");
    expect(kindOf(verify(changed(first, { path: [...first.path, EMPTY_ROOT] })))).toBe("bad_signature");
    expect(kindOf(verify(changed(first, { path: second.path })))).toBe("bad_signature");
  });

  it("refuses statements of another type and heads under another payload type", async () => {
    const [other] = await batchOf(statements, `${TYPE}x`);
    expect(kindOf(verifier().verify(other))).toBe("wrong_type");
    const asEnvelope = signEnvelope(key, TYPE, toBinary(BatchHeadSchema, headOf({})));
    expect(kindOf(verifier().verify(changed(await one(), { head: asEnvelope })))).toBe("wrong_type");
  });

  it("refuses unknown keys and signatures by another key", async () => {
    const [strange] = await batchOf(statements, TYPE, stranger);
    const [posing] = await batchOf(statements, TYPE, { ...stranger, keyId: key.keyId });
    expect(kindOf(verifier().verify(strange))).toBe("unknown_key");
    expect(kindOf(verifier().verify(posing))).toBe("bad_signature");
  });

  it("refuses malformed shapes without throwing", async () => {
    const signed = await one();
    const { head: _, ...headless } = signed;
    const hostile = [
      undefined,
      create(SignedSchema, {}),
      create(SignedSchema, { ...headless }),
      changed(signed, { index: 1 }),
      changed(signed, { index: 0xffffffff }),
      changed(signed, { index: -1 }),
      changed(signed, { index: Number.NaN }),
      changed(signed, { path: [EMPTY_ROOT.subarray(1)] }),
      changed(signed, { path: [new Uint8Array(0)] }),
      changed(signed, { path: Array.from({ length: 11 }, () => EMPTY_ROOT) }),
      changed(signed, { path: Array.from({ length: 100_000 }, () => EMPTY_ROOT) }),
    ];
    const { verify } = verifier();
    expect(hostile.map((message) => verify(message).ok)).toEqual(hostile.map(() => false));
    expect(kindOf(verify(hostile[3]))).toBe("malformed");
    expect(kindOf(verify(hostile[9]))).toBe("malformed");
  });

  it("refuses heads that a trusted key signed and that are malformed", () => {
    const { verify } = verifier();
    const kinds = [
      under({ size: 0 }),
      under({ size: MAX_BATCH + 1 }),
      under({ size: 0xffffffff }),
      under({ root: new Uint8Array(31) }),
      under({}, Buffer.from([0xff, 0xff])),
      under({}, new Uint8Array(0)),
    ].map((signed) => kindOf(verify(signed)));
    expect(kinds).toEqual(Array(6).fill("malformed"));
    expect(kindOf(verify(under({ size: 2 })))).toBe("bad_signature");
  });

  it("refuses the statement after any change of any byte that changes the message", async () => {
    const [signed = create(SignedSchema)] = await batchOf(statements.slice(0, 3));
    const bytes = toBinary(SignedSchema, signed);
    const { verify } = verifier();
    expect(verify(fromBinary(SignedSchema, bytes)).ok).toBe(true);
    const accepted: number[] = [];
    bytes.forEach((byte, i) => {
      for (const change of [1, 0x80, 0xff]) {
        const received = decode(Buffer.from(bytes).fill(byte ^ change, i, i + 1));
        // The decoder does not look at wire types, so a few changes to tags give the same message.
        if (!received || equals(SignedSchema, received, signed)) continue;
        if (verify(received).ok) accepted.push(i);
      }
    });
    expect(accepted).toEqual([]);
  });
});

describe("the cache of heads", () => {
  // Counts how often a key is looked up by an envelope's verification: twice for each verified head, once for a hit.
  function counting(keys: Map<string, VerifyKey>) {
    const lookups: string[] = [];
    const find = (keyId: string) => {
      lookups.push(keyId);
      return keys.get(keyId);
    };
    return { lookups, find };
  }

  it("verifies the signature of a batch once", async () => {
    const ring = counting(new Map([[key.keyId, key]]));
    const { verify } = createBatchVerifier({ keyring: ring, statementType: TYPE });
    const signed = await batchOf(statements);
    expect(signed.every((s) => verify(s).ok)).toBe(true);
    expect(ring.lookups.length).toBe(2 + 4);
  });

  it("forgets the least recently used head first", async () => {
    const ring = counting(new Map([[key.keyId, key]]));
    const { verify } = createBatchVerifier({ keyring: ring, statementType: TYPE, cacheSize: 2 });
    const [a, b, c] = [await one(), (await batchOf(statements))[0], (await batchOf(statements.slice(2)))[0]];
    const lookupsFor = (signed: Signed | undefined) => {
      ring.lookups.length = 0;
      expect(verify(signed).ok).toBe(true);
      return ring.lookups.length;
    };
    expect([a, b, a, c, a, b].map(lookupsFor)).toEqual([2, 2, 1, 2, 1, 2]);
  });

  it("refuses a remembered head as soon as its key is not trusted any more", async () => {
    const keys = new Map<string, VerifyKey>([[key.keyId, key]]);
    const { verify } = createBatchVerifier({ keyring: counting(keys), statementType: TYPE });
    const signed = await one();
    expect(kindOf(verify(signed))).toBe("ok");
    keys.set(key.keyId, { ...stranger, keyId: key.keyId });
    expect(kindOf(verify(signed))).toBe("bad_signature");
    keys.delete(key.keyId);
    expect(kindOf(verify(signed))).toBe("unknown_key");
  });

  it("does not answer for a head with other signatures", async () => {
    const signed = await one();
    const { verify } = verifier();
    expect(verify(signed).ok).toBe(true);
    const forged = create(SignatureSchema, { keyId: key.keyId, signature: new Uint8Array(64) });
    const head = create(SignedEnvelopeSchema, {
      ...(signed.head ?? create(SignedEnvelopeSchema)),
      signatures: [forged],
    });
    expect(kindOf(verify(changed(signed, { head })))).toBe("bad_signature");
  });
});

// What no decoder reads is refused by the transport before it comes here.
function decode(bytes: Uint8Array): Signed | undefined {
  try {
    return fromBinary(SignedSchema, bytes);
  } catch {
    return undefined;
  }
}
