import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { signEnvelope } from "../../../lib/sign/dsse.ts";
import { generateSigningKey, type SigningKey } from "../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../lib/sign/payload-types.ts";
import { checkManifest, isDeviceName, manifestOverLimit } from "./manifest.ts";

const key = generateSigningKey();

function manifest(signer: SigningKey, change: MessageInitShape<typeof ManifestSchema> = {}) {
  const message = create(ManifestSchema, {
    version: 1,
    deviceId: `dev-${signer.keyId}`,
    name: "nas",
    publicKey: signer.raw,
    ...change,
  });
  return signEnvelope(signer, MANIFEST_TYPE, toBinary(ManifestSchema, message));
}

test("takes a manifest that is signed by the key it names", () => {
  expect(checkManifest(manifest(key), "nas", undefined)).toMatchObject({ ok: true });
  expect(checkManifest(manifest(key), "nas", key.raw)).toMatchObject({ ok: true });
});

test.each([
  ["no manifest", undefined, "no manifest"],
  ["another key than before", manifest(generateSigningKey()), "not the one it showed first"],
  ["another name", manifest(key, { name: "laptop" }), 'not "nas"'],
  ["an id of another key", manifest(key, { deviceId: "dev-0000000000000000" }), "id is not that of its key"],
  ["more than it may say", manifest(key, { readRoots: Array.from({ length: 1025 }, () => "/") }), "1025 readRoots"],
  ["a large manifest", manifest(key, { platform: "x".repeat(3 * 1024 * 1024) }), "larger than 3145728 bytes"],
  ["a key it does not hold", manifest(key, { publicKey: generateSigningKey().raw }), "signature"],
])("refuses %s", (_, envelope, problem) => {
  const result = checkManifest(envelope, "nas", key.raw);
  expect(result.ok).toBe(false);
  expect(!result.ok && result.problem).toContain(problem);
});

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `x${at}`);
}

function labels(count: number) {
  return texts(count).map((key) => ({ $typeName: "reeve.device.v1.Label" as const, key, value: "" }));
}

test("an ordinary manifest, and one at its limits", () => {
  const most = { labels: labels(256), capabilities: texts(4096), readRoots: ["/".padEnd(4096, "x")] };
  expect(manifestOverLimit(create(ManifestSchema, { name: "nas", writeRoots: ["/srv"] }))).toBeUndefined();
  expect(manifestOverLimit(create(ManifestSchema, most))).toBeUndefined();
});

test.each<[string, Partial<Manifest>]>([
  ["257 labels", { labels: labels(257) }],
  ["4097 capabilities", { capabilities: texts(4097) }],
  ["1025 readRoots", { readRoots: texts(1025) }],
  ["1025 writeRoots", { writeRoots: texts(1025) }],
  ["text of more than 4096", { writeRoots: ["/".padEnd(4097, "x")] }],
  ["text of more than 4096", { platform: "x".repeat(4097) }],
])("%s", (problem, facts) => {
  expect(manifestOverLimit(create(ManifestSchema, facts as Manifest))).toContain(problem);
});

test("a name has not the form of an id, which callers may say instead of it", () => {
  expect(["nas", "dev-1", "dev-0123456789abcdef0", "enr-1"].filter(isDeviceName)).toHaveLength(4);
  expect(["dev-0123456789abcdef", `enr-${"0".repeat(32)}`, "a b", ""].filter(isDeviceName)).toEqual([]);
});
