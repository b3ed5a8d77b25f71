import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode, SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { ExecutionOutcome, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { signManifest } from "../../lib/owner-manifest/envelope.ts";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import type { DeviceAgentConfig } from "./config.ts";
import { openTestAgent } from "./testing/test-agent.ts";

const key = generateSigningKey();

let folder: string;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-owner-")));
});
afterEach(() => rm(folder, { recursive: true }));

/** A device that keeps this manifest. */
async function bounded(more: string, until = Date.now() + 3_600_000): Promise<Partial<DeviceAgentConfig>> {
  const file = join(folder, "manifest.json");
  const head = `version: 1\nexpire_time: ${new Date(until).toISOString().slice(0, 19)}Z\ndevices: [test]\nmode: user\n`;
  await writeFile(file, signManifest(key, head + more));
  return { mode: Mode.USER, writeRoots: [], owner: { file, keys: [key], unstated: new Set(["writeRoots"]) } };
}

test("a device offers no capability that its owner's manifest does not grant, whatever a grant says", async () => {
  await writeFile(join(folder, "a.txt"), "hello");
  await using device = await openTestAgent(await bounded(`capabilities: ["fs.*"]\nwrite_roots: [${folder}]\n`));
  const read = await device.execute("fs.read", { path: join(folder, "a.txt") });
  expect(read.outcome).toBe(ExecutionOutcome.SUCCEEDED);
  expect(await device.execute("exec", { argv: ["true"] })).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.MANIFEST_REFUSED },
  });
  const { manifest } = device.agent.manifest();
  expect(manifest.writeRoots).toEqual([folder]);
  expect(manifest.owner).toMatchObject({ version: 1n, keyId: key.keyId });
});

test("a device refuses every call once its owner's manifest has expired, and does not start again", async () => {
  const until = Math.ceil(Date.now() / 1000) * 1000 + 20_000;
  let nowMs = Date.now();
  await using device = await openTestAgent(await bounded("capabilities: ['*']\n", until), { now: () => nowMs });
  expect((await device.execute("device.ping", {})).outcome).toBe(ExecutionOutcome.SUCCEEDED);
  nowMs = until;
  expect(await device.execute("device.ping", {})).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.MANIFEST_REFUSED, metadata: { expire_time: new Date(until).toISOString() } },
  });
  await expect(device.restart()).rejects.toThrow("it has expired");
});

test("a device that cannot keep the sandbox of its owner's manifest refuses, and runs nothing at a lower level", async () => {
  const config = await bounded(`capabilities: ["*"]\nwrite_roots: [${folder}]\nsandbox: workspace\n`);
  await using device = await openTestAgent(config, { env: { PATH: folder } });
  expect(device.agent.sandbox.isolation).toBe("none");
  expect(await device.execute("exec", { argv: ["/bin/true"] })).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.SANDBOX_UNAVAILABLE, metadata: { required: "workspace" } },
  });
});

test("a device keeps every program at the sandbox of its owner's manifest", async (context) => {
  const config = await bounded(`capabilities: ["*"]\nwrite_roots: [${folder}]\nsandbox: workspace\n`);
  await using device = await openTestAgent(config);
  if (device.agent.sandbox.isolation === "none") context.skip(device.agent.sandbox.shortfall);
  const finished = await device.execute("exec", { argv: ["cat", "/etc/shadow"] });
  expect(JSON.parse(Buffer.from(finished.output).toString())).toMatchObject({ exitCode: 1, stdout: "" });
  const receipt = fromBinary(ReceiptSchema, finished.receipt?.statement ?? new Uint8Array());
  expect(receipt.sandbox).toBe(SandboxLevel.WORKSPACE);
});

test("a device whose settings ask for more than its owner's manifest grants does not start", async () => {
  const config = await bounded("capabilities: ['*']\n");
  await expect(openTestAgent({ ...config, mode: Mode.ALL })).rejects.toThrow("device.mode");
  await expect(openTestAgent({ ...config, readRoots: [folder] })).rejects.toThrow("device.read_roots");
});
