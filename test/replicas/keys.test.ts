import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { KeyRole, KeyService, KeyState } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { createLogger, type Logger } from "../../lib/log/log.ts";
import { inMemoryTransport } from "../../lib/server/in-memory.fixture.ts";
import { signKeyring } from "../../lib/sign/keyring.ts";
import { generateSigningKey, type VerifyKey } from "../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../lib/sign/payload-types.ts";
import { createDeviceAgent, type DeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService, type PolicyService } from "../../services/policy/service.ts";
import type { DeviceDialer } from "../../services/registry/devices/device-link.ts";
import { createRegistry } from "../../services/registry/service.ts";
import { eventually } from "../../testkit/eventually.ts";

const HOUR = 3_600_000;
const logger = createLogger({ service: "test", level: "silent" });
const OPERATOR = { id: "op-1", kind: "operator" as const, roles: [Role.OPERATOR], name: "operator" };

let folder = "";
let nowMs = 0;
const now = (): number => nowMs;
let device: DeviceAgent | undefined;
let policy: PolicyService;
let registry: Awaited<ReturnType<typeof createRegistry>>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-keys-"));
  await mkdir(join(folder, "work"));
  nowMs = Date.now();
  policy = await createPolicyService({ config: { stateDir: join(folder, "policy"), reloadMs: 20 }, logger, now });
  device = await openDevice(policy.grantKey);
  const dial: DeviceDialer = (requests, signal) => {
    if (device === undefined) throw new Error("the device is switched off");
    return device.link(requests, signal);
  };
  registry = await createRegistry({
    config: { stateDir: join(folder, "registry"), localDevice: "this" },
    policy: policy.link("registry"),
    devices: new Map([["this", dial]]),
    bus: createInProcessBus({ logger }),
    logger,
    now,
  });
});

afterEach(async () => {
  await Promise.all([registry.close(), device?.close()]);
  await policy.close();
  await rm(folder, { recursive: true });
});

function openDevice(pin: VerifyKey, more: { keyringVersion?: bigint; logger?: Logger } = {}): Promise<DeviceAgent> {
  const roots = { readRoots: [], writeRoots: [join(folder, "work")] };
  const config = { stateDir: join(folder, "device"), name: "this", mode: Mode.ALL, labels: {}, ...roots };
  return createDeviceAgent({ config, grantKeys: [pin], logger, env: process.env, now, ...more });
}

async function ping(): Promise<{ state: CallState | undefined; reason: ErrorReason | undefined }> {
  const client = registryClient(inMemoryTransport(registry.routes, { principal: OPERATOR }));
  const { call } = await client.callTool({ device: "this", tool: "device.ping", params: { text: "hello" } });
  return { state: call?.status?.state, reason: call?.status?.error?.reason };
}

const SUCCEEDED = { state: CallState.SUCCEEDED, reason: undefined };

function keys() {
  return createClient(KeyService, inMemoryTransport(policy.routes, { principal: OPERATOR }));
}

/** Rotates the grant key, and lets the whole overlap pass. */
async function rotate(): Promise<void> {
  const { key } = await keys().rotateKey({ role: KeyRole.GRANT, overlap: { seconds: BigInt(7200) } });
  nowMs += 2 * HOUR;
  await eventually(() => expect(policy.grantKeys.map(({ keyId }) => keyId)).toEqual([key?.id]));
}

test("a device follows the keys while it is linked, and calls go on through a whole rotation", async () => {
  expect(await ping()).toEqual(SUCCEEDED);
  await keys().rotateKey({ role: KeyRole.GRANT, overlap: { seconds: BigInt(7200) } });
  for (const state of [KeyState.NEXT, KeyState.ACTIVE, KeyState.ACTIVE]) {
    await eventually(async () => expect((await keys().listKeys({ role: KeyRole.GRANT })).keys[0]?.state).toBe(state));
    await eventually(async () => expect(await ping()).toEqual(SUCCEEDED));
    nowMs += HOUR;
  }
});

test("a device that was offline over two rotations follows when it is online, pinned to a key that has ended", async () => {
  const pin = policy.grantKey;
  expect(await ping()).toEqual(SUCCEEDED);
  await device?.close();
  device = undefined;
  await rotate();
  await rotate();
  expect(policy.grantKeys.some(({ keyId }) => keyId === pin.keyId)).toBe(false);
  device = await openDevice(pin);
  await eventually(async () => expect(await ping()).toEqual(SUCCEEDED));
});

test("a device that enrolls after a rotation never trusts the key that has retired, and warns of nothing", async () => {
  const retired = policy.grantKey;
  await device?.close();
  device = undefined;
  await rm(join(folder, "device", "grant-keys.json"), { force: true });
  await rotate();
  const { keyrings } = await keys().getKeyring({ role: KeyRole.GRANT });
  expect(keyrings).toHaveLength(4);
  const log: string[] = [];
  const logged = createLogger({
    service: "test",
    level: "info",
    destination: { write: (line: string) => void log.push(line) },
  });
  device = await openDevice(policy.grantKey, { keyringVersion: 4n, logger: logged });
  await eventually(async () => expect(await ping()).toEqual(SUCCEEDED));
  // A relay replays what policy has signed: the third version holds the old key beside the new one.
  async function* requests() {
    for (const keyring of keyrings)
      yield { commands: [{ command: { case: "trustKeyring", value: { keyring } } }] } as never;
  }
  for await (const _ of device.link(requests(), new AbortController().signal));
  const versions: bigint[] = [];
  for await (const { events } of device.link((async function* () {})(), new AbortController().signal)) {
    for (const { event } of events) if (event.case === "hello") versions.push(event.value.keyringVersion);
  }
  expect(versions).toEqual([4n]);
  expect(log.filter((line) => line.includes("keyring") || line.includes("grant keys"))).toEqual([]);
  expect(policy.grantKey.keyId).not.toBe(retired.keyId);
});

test("a device takes no keys that the one it trusts did not sign, from any sender", async () => {
  const stranger = generateSigningKey();
  const forged = signKeyring(stranger, { version: 99n, statementType: GRANT_TYPE, keys: [stranger] });
  async function* requests() {
    yield { commands: [{ command: { case: "trustKeyring", value: { keyring: forged } } }] } as never;
  }
  const events = device?.link(requests(), new AbortController().signal);
  for await (const _ of events ?? []);
  const again = device?.link((async function* () {})(), new AbortController().signal);
  for await (const { events: first } of again ?? []) {
    const hello = first[0]?.event;
    expect(hello?.case === "hello" && hello.value.keyringVersion).not.toBe(99n);
  }
  expect(await ping()).toEqual(SUCCEEDED);
});
