import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { signJoin } from "../../../lib/identity/join-proof.ts";
import { parseJoinToken } from "../../../lib/identity/join-token.ts";
import { identityOf } from "../../../lib/identity/spiffe.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { refusal, sceneOf } from "./testing/scene.ts";
import { type TestDevice, testDevice, testEnvelope } from "./testing/test-device.ts";
import { GRANT_KEYS, type TestEnrollment, testEnrollment } from "./testing/test-enrollment.ts";

const DAY_MS = 24 * 3_600_000;
let plane: TestEnrollment;

beforeEach(async () => {
  plane = await testEnrollment();
});
afterEach(() => plane.close());

const { invite, enroll, changes, attach } = sceneOf(() => plane);

describe("joining", () => {
  test("waits for an operator who compares the fingerprint, then gives a certificate", async () => {
    const device = testDevice();
    const { token, enrollment } = await invite();
    const asked = await plane.anybody.join(await device.joining(token));
    expect(asked).toMatchObject({ certificateChain: "", grantKeys: [], keyringVersion: 0n });
    expect(asked.retryDelay?.seconds).toBeGreaterThan(0n);
    expect(asked.enrollment).toMatchObject({
      state: State.PENDING,
      fingerprint: device.fingerprint,
      deviceId: device.id,
    });
    const wrong = plane.operator.confirmEnrollment({
      enrollmentId: enrollment?.id ?? "",
      fingerprint: testDevice().fingerprint,
    });
    expect(await refusal(wrong)).toBe("INVALID_INPUT");
    expect((await plane.anybody.join(await device.joining(token))).certificateChain).toBe("");
    expect(await refusal(plane.enrollment.mayAttach(device.id))).toBe("IDENTITY_REFUSED revoked");

    const confirming = { enrollmentId: enrollment?.id ?? "", fingerprint: device.fingerprint };
    expect((await plane.operator.confirmEnrollment(confirming)).enrollment).toMatchObject({ state: State.ENROLLED });
    const joined = await plane.anybody.join(await device.joining(token));
    const certificate = new X509Certificate(joined.certificateChain);
    expect(identityOf(certificate)).toEqual({ kind: "device", id: device.id, trustDomain: "reeve" });
    expect(certificate.checkPrivateKey(device.tlsKey)).toBe(true);
    expect(Date.parse(certificate.validTo)).toBe(Math.floor((plane.clock.now + DAY_MS) / 1000) * 1000);
    expect(joined.grantKeys).toEqual(GRANT_KEYS);
    expect(joined.keyringVersion).toBe(3n);
    await plane.enrollment.mayAttach(device.id);
    await attach(device, joined.certificateChain);
    expect(changes().slice(-3)).toEqual(["invited", "pending", "enrolled"]);
    expect(plane.records.at(-1)).toMatchObject({ actor: "ann", deviceId: device.id, fingerprint: device.fingerprint });
  });

  test("needs no operator where the token says so", async () => {
    const { device, chain } = await enroll();
    expect(chain).not.toBe("");
    await plane.enrollment.mayAttach(device.id);
    expect(plane.records.at(-1)).toMatchObject({
      change: DeviceIdentityChange.ENROLLED,
      why: "the token confirms by itself",
    });
  });

  test("again with the same key gives the same certificate, and not after a renewal", async () => {
    const { device, token, chain } = await enroll();
    expect((await plane.anybody.join(await device.joining(token))).certificateChain).toBe(chain);
    await plane.device(device.id).renewCertificate({ certificateRequest: await device.request(), renewCount: 1n });
    expect(await refusal(plane.anybody.join(await device.joining(token)))).toBe("JOIN_REFUSED used");
  });

  test("with a token that another key has shown is refused, and recorded", async () => {
    const { token } = await invite();
    await plane.anybody.join(await testDevice().joining(token));
    const other = testDevice();
    expect(await refusal(plane.anybody.join(await other.joining(token)))).toBe("JOIN_REFUSED used");
    await eventually(() =>
      expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.REFUSED, deviceId: other.id }),
    );
  });

  test("of two keys at once, one gets the token", async () => {
    const { token } = await invite("web1", { autoConfirm: true });
    const asked = await Promise.all(
      [testDevice(), testDevice()].map(async (one) =>
        plane.anybody.join(await one.joining(token)).then(
          () => "in",
          () => "out",
        ),
      ),
    );
    expect(asked.sort()).toEqual(["in", "out"]);
  });

  test.each<[string, string, (device: TestDevice, token: string) => Promise<object> | object]>([
    [
      "another name",
      "name",
      (device) => ({ manifest: testEnvelope(device.key, { name: "web2", labels: { role: "web" } }) }),
    ],
    [
      "other labels",
      "name",
      (device) => ({ manifest: testEnvelope(device.key, { name: "web1", labels: { role: "db" } }) }),
    ],
    [
      "more labels",
      "name",
      (device) => ({ manifest: testEnvelope(device.key, { name: "web1", labels: { role: "web", a: "b" } }) }),
    ],
    [
      "a manifest that another key signed",
      "proof",
      () => ({ manifest: testEnvelope(generateSigningKey(), { name: "web1", labels: { role: "web" } }) }),
    ],
    [
      "a changed manifest",
      "key",
      (device) => {
        const manifest = testEnvelope(device.key, { name: "web1", labels: { role: "web" } });
        return { manifest: { ...manifest, payload: flip(manifest.payload) } };
      },
    ],
    ["no manifest", "key", () => ({ manifest: { payload: Buffer.from("none") } })],
    [
      "a proof of another key",
      "proof",
      async (device, token) => ({
        proof: signJoin(generateSigningKey(), parseJoinToken(token).id, await device.request()),
      }),
    ],
    [
      "a proof for another token",
      "proof",
      async (device) => ({ proof: signJoin(device.key, "enr-2", await device.request()) }),
    ],
    [
      "a changed certificate request",
      "proof",
      async (device) => ({ certificateRequest: flip(await device.request()) }),
    ],
  ])("with %s is refused", async (_, why, lie) => {
    const { token } = await invite();
    const device = testDevice();
    expect(await refusal(plane.anybody.join(await device.joining(token, await lie(device, token))))).toBe(
      `JOIN_REFUSED ${why}`,
    );
    await eventually(() => expect(changes()).toContain("refused"));
    // The token is still good for the honest device.
    expect((await plane.anybody.join(await device.joining(token))).enrollment?.state).toBe(State.PENDING);
  });

  test("is recorded as refused ten times a token, and no more often", async () => {
    const { token } = await invite();
    const bad = { manifest: { payload: Buffer.from("none") } };
    for (let n = 0; n < 12; n++) await refusal(plane.anybody.join(await testDevice().joining(token, bad)));
    await eventually(() => expect(changes().filter((change) => change === "refused")).toHaveLength(10));
  });

  test("is confirmed only while the token is good", async () => {
    const device = testDevice();
    const { token, enrollment } = await invite();
    await plane.anybody.join(await device.joining(token));
    plane.clock.now += 15 * 60_000;
    const confirming = { enrollmentId: enrollment?.id ?? "", fingerprint: device.fingerprint };
    expect(await refusal(plane.operator.confirmEnrollment(confirming))).toBe("JOIN_REFUSED expired");
  });

  test("takes effect once it is recorded, also by another replica after this one is gone", async () => {
    await plane.close();
    plane = await testEnrollment({ recordWaitMs: 20 });
    const device = testDevice();
    const { token } = await invite("web1", { autoConfirm: true });
    plane.policy(false);
    expect(await refusal(plane.anybody.join(await device.joining(token)))).toBe("POLICY_UNAVAILABLE");
    expect(await refusal(plane.enrollment.mayAttach(device.id))).toBe("IDENTITY_REFUSED revoked");
    await plane.enrollment.close();
    const other = await plane.another();
    await eventually(() => other.enrollment.mayAttach(device.id));
    expect(other.records.map(({ change }) => change)).toContain(DeviceIdentityChange.ENROLLED);
    expect((await other.anybody.join(await device.joining(token))).certificateChain).not.toBe("");
    await other.close();
  });
});

describe("a name", () => {
  test("that is taken is given to no other device", async () => {
    await enroll();
    expect(await refusal(invite())).toBe("JOIN_REFUSED name");
    plane.pins.set("web2", { deviceId: "dev-0000000000000000" });
    expect(await refusal(enroll(testDevice(), "web2"))).toBe("JOIN_REFUSED name");
  });

  test("goes to the device that replaces the one before, whose certificate is refused from then on", async () => {
    const before = await enroll();
    const after = await enroll(testDevice(), "web1", { replace: true });
    expect(plane.requests).toContain(`forget ${before.device.id}`);
    expect(await refusal(attach(before.device, before.chain))).toBe("IDENTITY_REFUSED revoked");
    expect(await refusal(plane.enrollment.mayAttach(before.device.id))).toBe("IDENTITY_REFUSED revoked");
    await attach(after.device, after.chain);
    await eventually(() =>
      expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.REMOVED, deviceId: before.device.id }),
    );
  });

  test("is not another name of a device that has enrolled", async () => {
    const { device } = await enroll();
    expect(await refusal(enroll(device, "web2"))).toBe("JOIN_REFUSED key");
  });
});

function flip(bytes: Uint8Array): Uint8Array {
  const changed = Buffer.from(bytes);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  return changed;
}
