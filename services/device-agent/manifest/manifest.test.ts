import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { deviceIdOf } from "../../../lib/identity/device-id.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { verifyEnvelope } from "../../../lib/sign/dsse.ts";
import { createKeyring, generateSigningKey } from "../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../lib/sign/payload-types.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { AGENT_VERSION } from "../agent-version.ts";
import { buildManifest, keepManifest, type ManifestFacts, openManifest, sealManifest } from "./manifest.ts";

const key = generateSigningKey();
const facts: ManifestFacts = {
  key,
  name: "laptop",
  labels: { zone: "home", role: "desk" },
  mode: Mode.USER,
  capabilities: ["fs.read"],
  readRoots: ["/home"],
  writeRoots: [],
  hosts: ["api.example.com"],
  sandbox: SandboxLevel.NONE,
  platform: "linux/x64",
  agentVersion: AGENT_VERSION,
  unavailable: [{ tool: "docker.list", why: "no engine answers" }],
  announced: [],
  issueMs: 1_800_000_000_000,
};
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-manifest-"));
});

afterEach(() => rm(folder, { recursive: true }));

test("a device's id comes from its public key", () => {
  expect(deviceIdOf(key)).toBe(`dev-${sha256Hex(key.raw).slice(0, 16)}`);
});

test("a sealed manifest verifies with the device's key, and its digest is of the signed bytes", () => {
  const sealed = sealManifest(key, buildManifest(facts));
  const result = verifyEnvelope(sealed.envelope, createKeyring([key]), MANIFEST_TYPE);
  if (!result.ok) throw new Error(result.kind);
  expect(sha256Hex(result.payload)).toBe(sealed.digest);
  const { labels, deviceId } = fromBinary(ManifestSchema, result.payload);
  expect(deviceId).toBe(deviceIdOf(key));
  expect(labels.map((label) => label.key)).toEqual(["role", "zone"]);
});

test("a manifest of another key is not opened", () => {
  const { envelope } = sealManifest(generateSigningKey(), buildManifest(facts));
  expect(openManifest(key, envelope)).toBeUndefined();
});

test("a restart alone does not change the digest", async () => {
  const path = join(folder, "manifest.pb");
  const first = await keepManifest(path, key, buildManifest(facts));
  const second = await keepManifest(path, key, buildManifest({ ...facts, issueMs: facts.issueMs + 1000 }));
  expect(second.digest).toBe(first.digest);
});

test("a change makes a new manifest", async () => {
  const path = join(folder, "manifest.pb");
  const first = await keepManifest(path, key, buildManifest(facts));
  const changed = { ...facts, mode: Mode.ALL, issueMs: facts.issueMs + 1000 };
  const second = await keepManifest(path, key, buildManifest(changed));
  expect(second.digest).not.toBe(first.digest);
  expect((await keepManifest(path, key, buildManifest(changed))).digest).toBe(second.digest);
});

test("a file that is damaged, or that another key signed, is replaced", async () => {
  const path = join(folder, "manifest.pb");
  await writeFile(path, "no manifest");
  const first = await keepManifest(path, key, buildManifest(facts));
  const stranger = generateSigningKey();
  const second = await keepManifest(path, stranger, buildManifest({ ...facts, key: stranger }));
  expect(openManifest(stranger, second.envelope)?.digest).toBe(second.digest);
  expect(second.digest).not.toBe(first.digest);
});

test("the agent states the package's version", () => {
  expect(AGENT_VERSION).toBe(packageJson.version);
});
