import { mkdtemp, stat } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { ManifestSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { ExecutionOutcome } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createLogger } from "../../lib/log/log.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { createDeviceAgent } from "./service.ts";
import { livingIn } from "./testing/living.ts";
import { openTestAgent } from "./testing/test-agent.ts";
import { openTestLink } from "./testing/test-link.ts";

test("states what it offers, signed, with its own id", async () => {
  const capabilities = ["device.ping", "fs.read"];
  await using device = await openTestAgent({ mode: Mode.USER, labels: { role: "desk" }, capabilities });
  const { manifest } = await device.client.getManifest({});
  const stated = fromBinary(ManifestSchema, manifest?.payload ?? new Uint8Array());
  expect(stated.deviceId).toBe(device.agent.deviceId);
  expect(stated.capabilities).toEqual(capabilities);
  expect(stated.writeRoots).toEqual([device.work]);
  expect(sha256Hex(manifest?.payload ?? "")).toBe(device.agent.manifest().digest);
});

test("keeps its folder to itself, also inside a root", async () => {
  await using device = await openTestAgent();
  expect((await stat(device.config.stateDir)).mode & 0o777).toBe(0o700);
  const finished = await device.execute("fs.read", { path: `${device.config.stateDir}/device.key` });
  expect(finished).toMatchObject({
    outcome: ExecutionOutcome.FAILED,
    error: { reason: ErrorReason.PATH_OUTSIDE_ROOTS },
  });
});

test("runs real programs", async () => {
  await using device = await openTestAgent();
  const { output } = await device.execute("exec", { argv: ["echo", "hello"] });
  expect(JSON.parse(Buffer.from(output).toString())).toMatchObject({ stdout: "hello\n" });
});

test("after a restart is the same device with the same manifest, and knows its calls", async () => {
  await using device = await openTestAgent();
  const { deviceId } = device.agent;
  const manifest = device.agent.manifest();
  const start = await device.grants.start({ tool: "exec", args: { argv: ["echo", "hello"] }, callId: "call-1" });
  const first = await device.client.execute({ command: start });
  await device.restart();
  expect(device.agent.deviceId).toBe(deviceId);
  expect(device.agent.manifest().digest).toBe(manifest.digest);
  expect(await device.client.execute({ command: start })).toEqual(first);
  expect((await device.client.getExecution({ callId: "call-1" })).finished).toEqual(first.finished);
});

describe("a program with children of its own", () => {
  /** Prints its process group, then waits for a child of a child. */
  const tree = { argv: ["sh", "-c", "echo $$; sh -c 'sleep 1000 & wait' & wait"] };

  test("leaves no process behind when its call is canceled", async () => {
    await using device = await openTestAgent();
    const link = openTestLink(device.client);
    link.send({ case: "execute", value: await device.grants.start({ tool: "exec", args: tree, callId: "call-1" }) });
    const printed = await link.next("output");
    link.send({ case: "cancel", value: { callId: "call-1" } });
    expect(await link.next("finished")).toMatchObject({ outcome: ExecutionOutcome.CANCELED });
    expect(livingIn(Number(Buffer.from(printed.data).toString()))).toEqual([]);
    await link.leave();
  });

  test("leaves no process behind when its time is up", async () => {
    await using device = await openTestAgent();
    const finished = await device.execute("exec", { ...tree, timeoutMs: 2000 });
    expect(finished).toMatchObject({ outcome: ExecutionOutcome.TIMED_OUT, error: { reason: ErrorReason.TIMED_OUT } });
    expect(livingIn(Number(/^(\d+)$/m.exec(finished.message)?.[1]))).toEqual([]);
  });

  test("leaves no process behind when the agent closes, and that it was stopped is written down", async () => {
    await using device = await openTestAgent();
    const link = openTestLink(device.client);
    link.send({ case: "execute", value: await device.grants.start({ tool: "exec", args: tree, callId: "call-1" }) });
    const printed = await link.next("output");
    await device.restart();
    expect(livingIn(Number(Buffer.from(printed.data).toString()))).toEqual([]);
    const [end, ...more] = (await link.rest()).flatMap(({ event }) => (event.case === "finished" ? [event.value] : []));
    expect(end).toMatchObject({ callId: "call-1", outcome: ExecutionOutcome.CANCELED });
    expect(more).toEqual([]);
    expect((await device.client.getExecution({ callId: "call-1" })).finished).toMatchObject({
      outcome: ExecutionOutcome.CANCELED,
      error: { reason: ErrorReason.CANCELED, metadata: { by: "shutdown" } },
    });
  });
});

test("answers about calls that it does not know, and about none once it closes", async () => {
  await using device = await openTestAgent();
  expect(await device.client.getExecution({ callId: "call-1" }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
  expect(device.agent.ready()).toBe(true);
  await device.agent.close();
  expect(device.agent.ready()).toBe(false);
  expect(await device.client.getExecution({ callId: "call-1" }).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  expect(await device.execute("device.ping", {}).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
});

test("refuses what its mode does not offer", async () => {
  await using device = await openTestAgent({ mode: Mode.SUDO });
  expect(await device.execute("exec", { argv: ["true"] })).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.MANIFEST_REFUSED, metadata: { capability: "shell.exec" } },
  });
});

test("starts without a root, which grants no folder, but not without a key to trust", async () => {
  await using device = await openTestAgent();
  const stateDir = await mkdtemp(`${device.work}/other-`);
  const parts = { logger: createLogger({ service: "device-agent", level: "silent" }), env: process.env };
  const config = { ...device.config, stateDir };
  const grantKeys = [generateSigningKey()];
  const rootless = await createDeviceAgent({ config: { ...config, writeRoots: [] }, grantKeys, ...parts });
  const { readRoots, writeRoots } = rootless.manifest().manifest;
  expect([...readRoots, ...writeRoots]).toEqual([]);
  await rootless.close();
  await expect(createDeviceAgent({ config, grantKeys: [], ...parts })).rejects.toThrow("at least one key");
});
