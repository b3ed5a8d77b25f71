import { X509Certificate } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { createDeviceStore, forgetDevice, freeName, recheckDevice } from "../devices/device-store.ts";
import { refusal, sceneOf } from "./testing/scene.ts";
import { type TestDevice, testDevice } from "./testing/test-device.ts";
import { SERVICE_CA, type TestEnrollment, testEnrollment } from "./testing/test-enrollment.ts";

const DAY_MS = 24 * 3_600_000;
let plane: TestEnrollment;

beforeEach(async () => {
  plane = await testEnrollment();
});
afterEach(() => plane.close());

const { invite, enroll, changes, attach } = sceneOf(() => plane);

describe("renewal", () => {
  const renew = async (device: TestDevice, count: bigint) =>
    plane.device(device.id).renewCertificate({ certificateRequest: await device.request(), renewCount: count });

  test("gives a new certificate for the same key, and the authorities to trust", async () => {
    const { device, chain } = await enroll();
    plane.clock.now += DAY_MS / 2;
    const renewed = await renew(device, 1n);
    const certificate = new X509Certificate(renewed.certificateChain);
    expect(certificate.checkPrivateKey(device.tlsKey)).toBe(true);
    expect(Date.parse(certificate.validTo)).toBeGreaterThan(Date.parse(new X509Certificate(chain).validTo));
    expect(renewed.trustedAuthorities).toBe(SERVICE_CA);
    await attach(device, renewed.certificateChain);
    await attach(device, chain);
    expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.RENEWED, deviceId: device.id });
    const { enrollments } = await plane.operator.listEnrollments({});
    expect(Number(enrollments[0]?.certificateExpireTime?.seconds) * 1000).toBe(Date.parse(certificate.validTo));
  });

  test("may leave numbers out", async () => {
    const { device } = await enroll();
    await renew(device, 3n);
    await renew(device, 7n);
  });

  test.each([
    ["the same number", 5n, 5n],
    ["lower ones again and again", 3n, 4n],
  ])("with %s locks the device as cloned", async (_, first, second) => {
    const { device, chain } = await enroll();
    await renew(device, 5n);
    // One alone may have come late: the device gave it up, and asked with a higher number.
    if (first < 5n) expect(await refusal(renew(device, first))).toBe("NOT_READY");
    expect(await refusal(renew(device, second))).toBe("IDENTITY_REFUSED cloned");
    expect(plane.requests).toContain(`recheck ${device.id}`);
    expect(await refusal(attach(device, chain))).toBe("IDENTITY_REFUSED cloned");
    expect(await refusal(plane.enrollment.mayAttach(device.id))).toBe("IDENTITY_REFUSED cloned");
    expect(await refusal(renew(device, 6n))).toBe("IDENTITY_REFUSED cloned");
    await eventually(() =>
      expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.LOCKED, deviceId: device.id }),
    );
    await plane.operator.unlockDevice({ device: "web1" });
    await renew(device, 6n);
  });

  test("with a number that no number holds is refused", async () => {
    const { device } = await enroll();
    expect(await refusal(renew(device, 2n ** 53n))).toBe("INVALID_INPUT");
    await renew(device, 1n);
  });

  test("that was given up changes nothing and says nothing, however late it comes", async () => {
    const { device, chain } = await enroll();
    await renew(device, 6n);
    const free = Promise.withResolvers<void>();
    const busy = plane.db.transaction().execute(() => free.promise);
    const request = { certificateRequest: await device.request(), renewCount: 6n };
    const late = plane.device(device.id).renewCertificate(request, { timeoutMs: 50 });
    await expect(late).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    free.resolve();
    await busy;
    await attach(device, chain);
    await renew(device, 7n);
  });

  test("is for the enrolled key only", async () => {
    const { device } = await enroll();
    const certificateRequest = await testDevice().request();
    expect(await refusal(plane.device(device.id).renewCertificate({ certificateRequest, renewCount: 1n }))).toBe(
      "INVALID_INPUT",
    );
    const broken = plane.device(device.id).renewCertificate({ certificateRequest: Buffer.from("x"), renewCount: 1n });
    expect(await refusal(broken)).toBe("INVALID_INPUT");
  });

  test("does not happen without its record, and its number is used up", async () => {
    await plane.close();
    plane = await testEnrollment({ recordWaitMs: 20 });
    const { device } = await enroll();
    plane.policy(false);
    expect(await refusal(renew(device, 1n))).toBe("POLICY_UNAVAILABLE");
    plane.policy(true);
    await renew(device, 2n);
  });

  test("is for devices only", async () => {
    const certificateRequest = await testDevice().request();
    expect(await refusal(plane.operator.renewCertificate({ certificateRequest, renewCount: 1n }))).toBe(
      "ROLE_REQUIRED",
    );
    expect(
      await refusal(plane.device("dev-0000000000000000").renewCertificate({ certificateRequest, renewCount: 1n })),
    ).toBe("UNKNOWN_DEVICE");
  });
});

describe("an operator", () => {
  test("locks a device, also while policy is unavailable, and it is recorded later", async () => {
    const { device, chain } = await enroll();
    plane.policy(false);
    const { enrollment } = await plane.operator.lockDevice({ device: "web1", why: "stolen" });
    expect(enrollment).toMatchObject({ state: State.LOCKED, why: "stolen" });
    expect(plane.requests).toContain(`recheck ${device.id}`);
    expect(await refusal(attach(device, chain))).toBe("DEVICE_LOCKED stolen");
    expect(changes()).not.toContain("locked");
    plane.policy(true);
    await eventually(() =>
      expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.LOCKED, why: "stolen", actor: "ann" }),
    );
    const before = plane.records.length;
    await plane.operator.lockDevice({ device: device.id });
    expect(plane.records).toHaveLength(before);
  });

  test("unlocks it, once that is recorded", async () => {
    await plane.close();
    plane = await testEnrollment({ recordWaitMs: 20 });
    const { device, chain } = await enroll();
    await plane.operator.lockDevice({ device: device.id });
    plane.policy(false);
    expect(await refusal(plane.operator.unlockDevice({ device: device.id }))).toBe("POLICY_UNAVAILABLE");
    expect(await refusal(attach(device, chain))).toBe("DEVICE_LOCKED");
    plane.policy(true);
    await eventually(() => attach(device, chain));
  });

  test("removes it for good: old certificates stay refused after the same machine has enrolled again", async () => {
    const { device, chain } = await enroll();
    await plane.operator.removeDevice({ device: "web1", why: "sold" });
    expect(plane.requests).toContain(`forget ${device.id}`);
    expect(await refusal(attach(device, chain))).toBe("IDENTITY_REFUSED revoked");
    const again = await enroll(testDevice({ key: device.key }));
    expect(again.device.id).toBe(device.id);
    await attach(again.device, again.chain);
    expect(await refusal(attach(device, chain))).toBe("IDENTITY_REFUSED revoked");
  });

  test("removes an invitation", async () => {
    const { token, enrollment } = await invite();
    await plane.operator.removeDevice({ device: enrollment?.id ?? "" });
    expect(await refusal(plane.anybody.join(await testDevice().joining(token)))).toBe("JOIN_REFUSED unknown");
  });

  test("refuses names of no device", async () => {
    for (const call of [plane.operator.lockDevice, plane.operator.unlockDevice, plane.operator.removeDevice]) {
      expect(await refusal(call({ device: "missing" }))).toBe("UNKNOWN_DEVICE");
    }
    await invite();
    expect(await refusal(plane.operator.lockDevice({ device: "web1" }))).toBe("UNKNOWN_DEVICE");
  });

  test("pages through enrollments, newest first", async () => {
    for (const name of ["a1", "a2", "a3"]) await invite(name);
    const first = await plane.operator.listEnrollments({ pageSize: 2 });
    const second = await plane.operator.listEnrollments({ pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.enrollments, ...second.enrollments].map(({ name }) => name)).toEqual(["a3", "a2", "a1"]);
    expect(second.nextPageToken).toBe("");
  });
});

test("a stream does not outlive the newest certificate", async () => {
  await plane.close();
  plane = await testEnrollment({ certificateTtlMs: 60_000 });
  const { device } = await enroll();
  const held = { deviceId: device.id, shown: undefined };
  expect(await plane.enrollment.refusals([held])).toEqual(new Map());
  plane.clock.now += 59_000;
  await plane.enrollment.mayAttach(device.id);
  plane.clock.now += 1000;
  expect(await refusal(plane.enrollment.mayAttach(device.id))).toBe("IDENTITY_REFUSED expired");
  const refused = await plane.enrollment.refusals([held]);
  expect(faultDetail(refused.get(device.id))?.metadata.why).toBe("expired");
});

test("of many devices at once, those are refused that were locked or removed, or say what they did not enroll with", async () => {
  const devices = new Map<string, string>();
  for (const name of ["fine", "locked", "removed", "other"])
    devices.set(name, (await enroll(testDevice(), name)).device.id);
  await plane.operator.lockDevice({ device: "locked", why: "lost" });
  await plane.operator.removeDevice({ device: "removed" });
  const shown = (name: string) => ({
    name: name === "other" ? "fine" : name,
    labels: { role: "web" },
    isDialed: false,
  });
  const held = [...devices].map(([name, deviceId]) => ({ deviceId, shown: shown(name) }));
  const strangers = Array.from({ length: 1500 }, (_, n) => ({
    deviceId: `dev-${n}`,
    shown: { name: "x", labels: {}, isDialed: true },
  }));
  const refused = await plane.enrollment.refusals([...strangers, ...held]);
  const names = held.flatMap(({ deviceId, shown: { name } }) => (refused.has(deviceId) ? [name] : []));
  expect(names).toEqual(["locked", "removed", "fine"]);
  expect(refused.has(devices.get("fine") ?? "")).toBe(false);
  expect(refused.size).toBe(3);
});

test("what shuts a device out is written down for its streams in the same transaction, whichever replica is notified", async () => {
  await plane.close();
  const announce = async () => Promise.reject(new Error("this process dies"));
  const fleet = {
    recheck: recheckDevice,
    forget: forgetDevice,
    free: freeName,
    announce,
    pinned: async () => undefined,
  };
  plane = await testEnrollment({ fleet });
  const { device } = await enroll();
  const store = createDeviceStore(plane.db, createGroupCommit(plane.db), "rep-a", Date.now);
  await store.take({
    name: "web1",
    id: device.id,
    publicKey: device.key.raw,
    manifest: new Uint8Array(),
    linkMode: LinkMode.DIRECT,
    attachCount: 0,
  });
  const row = async () => (await store.since(-1)).find(({ id }) => id === device.id);
  await plane.operator.lockDevice({ device: "web1" });
  expect(await row()).toMatchObject({ checks: 1, removed: 0 });
  await refusal(enroll(testDevice(), "web1", { replace: true }));
  await eventually(async () => expect(await row()).toMatchObject({ removed: 1, replica_id: "" }));
});

test("a device is found by its id alone, whatever others are called", async () => {
  const { device } = await enroll();
  const other = await enroll(testDevice(), "other");
  // A name from before such names were refused.
  await plane.db.updateTable("enrollments").set({ name: device.id }).where("id", "=", other.id).execute();
  await plane.enrollment.onCloned(device.id);
  expect(await refusal(plane.enrollment.mayAttach(device.id))).toBe("IDENTITY_REFUSED cloned");
  await plane.enrollment.mayAttach(other.device.id);
});

test("a device that calls itself something else than it enrolled as does not attach", async () => {
  const { device } = await enroll();
  const shown = { name: "web1", labels: { role: "web" }, isDialed: false };
  await plane.enrollment.mayAttach(device.id, shown);
  for (const other of [{ name: "web2" }, { labels: {} }, { labels: { role: "db" } }]) {
    expect(await refusal(plane.enrollment.mayAttach(device.id, { ...shown, ...other }))).toBe(
      "IDENTITY_REFUSED malformed",
    );
  }
});

test("a device that is dialed need not have enrolled; one that was removed is refused there too", async () => {
  const dialed = { name: "web1", labels: { role: "web" }, isDialed: true };
  await plane.enrollment.mayAttach("dev-0000000000000000", dialed);
  const { device } = await enroll();
  await plane.operator.removeDevice({ device: device.id });
  expect(await refusal(plane.enrollment.mayAttach(device.id, dialed))).toBe("IDENTITY_REFUSED revoked");
});

test("a device that dials with a number from before is locked as cloned", async () => {
  const { device, chain } = await enroll();
  await plane.enrollment.onCloned(device.id);
  expect(await refusal(attach(device, chain))).toBe("IDENTITY_REFUSED cloned");
});

test("a certificate that names a device and was never given out is refused, and so is a device that never enrolled", async () => {
  const { chain } = await enroll();
  expect(await refusal(attach(testDevice(), chain))).toBe("IDENTITY_REFUSED revoked");
  expect(await refusal(plane.enrollment.mayAttach("dev-0000000000000000"))).toBe("IDENTITY_REFUSED revoked");
});

test("without TLS nothing is given out, and the reason says what to set", async () => {
  await plane.close();
  plane = await testEnrollment({ tls: undefined });
  const call = plane.operator.createJoinToken({ name: "web1" });
  expect(await refusal(call)).toBe("NOT_AVAILABLE");
  await expect(call).rejects.toThrow("REEVE_TLS_CERT_FILE");
  expect((await plane.operator.listAuthorities({})).authorities).toEqual([]);
});
