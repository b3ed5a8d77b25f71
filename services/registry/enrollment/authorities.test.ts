import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { peerWith, testDevice } from "./testing/test-device.ts";
import { SERVICE_CA, type TestEnrollment, testEnrollment } from "./testing/test-enrollment.ts";

const DAY_MS = 24 * 3_600_000;
let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await startPostgresServer();
});
afterAll(() => postgres.close());

describe.each([
  ["SQLite", async () => undefined],
  ["PostgreSQL", () => postgres.newDatabase()],
])("on %s", (_, place) => {
  const opened: TestEnrollment[] = [];
  const open = async () => {
    const plane = await testEnrollment({}, await place());
    opened.push(plane);
    return plane;
  };
  const another = async (plane: TestEnrollment) => {
    const other = await plane.another();
    opened.push(other);
    return other;
  };
  afterEach(async () => {
    for (const plane of opened.splice(0).reverse()) await plane.close();
  });
  const enroll = async (plane: TestEnrollment, name = "web1", replace = false) => {
    const device = testDevice();
    const { token } = await plane.operator.createJoinToken({ name, autoConfirm: true, replace });
    const { certificateChain } = await plane.anybody.join(await device.joining(token));
    return { device, chain: certificateChain };
  };

  test("replicas that start at once have the same authority", async () => {
    const first = await open();
    const others = await Promise.all([another(first), another(first)]);
    const ids = await Promise.all(
      [first, ...others].map(async ({ operator }) =>
        (await operator.listAuthorities({})).authorities.map(({ id }) => id),
      ),
    );
    expect(ids[0]).toHaveLength(1);
    expect(ids[1]).toEqual(ids[0]);
    expect(ids[2]).toEqual(ids[0]);
    // Whichever of them is quickest writes it down.
    const changes = () => [first, ...others].flatMap(({ records }) => records.map(({ change }) => change));
    await eventually(() => expect(changes()).toContain(DeviceIdentityChange.AUTHORITY_ROTATED));
  });

  test("a certificate from one replica is taken by another, and so is a lock", async () => {
    const first = await open();
    const second = await another(first);
    const { device, chain } = await enroll(first);
    expect(second.enrollment.tls?.current().ca).toContain(chainTop(chain).trim());
    await second.enrollment.checkPeer(peerWith(chain, device.id));
    await second.operator.lockDevice({ device: device.id });
    await expect(first.enrollment.checkPeer(peerWith(chain, device.id))).rejects.toThrow("locked");
  });

  test("of two replicas that are shown one token by two devices, one lets one in", async () => {
    const first = await open();
    const second = await another(first);
    const { token } = await first.operator.createJoinToken({ name: "web1", autoConfirm: true });
    const asked = await Promise.allSettled(
      [first, second].map(async ({ anybody }) => anybody.join(await testDevice().joining(token))),
    );
    expect(asked.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("of two devices with the same renewal number, one gets a certificate and the device is locked", async () => {
    const first = await open();
    const second = await another(first);
    const { device } = await enroll(first);
    const request = { certificateRequest: await device.request(), renewCount: 1n };
    const renewed = await Promise.allSettled(
      [first, second].map((plane) => plane.device(device.id).renewCertificate(request)),
    );
    expect(renewed.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await expect(first.enrollment.mayAttach(device.id)).rejects.toThrow("two places");
  });

  test("a new authority signs, the old one is trusted for as long as a certificate lives", async () => {
    const plane = await open();
    const before = await enroll(plane);
    const { authority } = await plane.operator.rotateAuthority({});
    expect(authority?.signs).toBe(true);
    const after = await enroll(plane, "web2");
    expect(chainTop(after.chain)).toBe(authority?.certificate);
    expect(chainTop(before.chain)).not.toBe(authority?.certificate);

    const trusted = () => plane.enrollment.tls?.current().ca ?? "";
    for (const ca of [SERVICE_CA, chainTop(before.chain), chainTop(after.chain)])
      expect(trusted()).toContain(ca.trim());
    const { authorities } = await plane.operator.listAuthorities({});
    expect(authorities.map(({ signs }) => signs)).toEqual([true, false]);
    expect(Number(authorities[1]?.trustEndTime?.seconds)).toBe(Math.floor((plane.clock.now + DAY_MS) / 1000));
    plane.clock.now += DAY_MS;
    expect(trusted()).not.toContain(chainTop(before.chain).trim());
    expect(trusted()).toContain(chainTop(after.chain).trim());
    expect(plane.records.at(-3)).toMatchObject({ change: DeviceIdentityChange.AUTHORITY_ROTATED, actor: "ann" });
  });

  test("another replica learns of a rotation by itself", async () => {
    const first = await open();
    const second = await another(first);
    const notified = vi.fn();
    second.enrollment.tls?.onChange(notified);
    const { authority } = await first.operator.rotateAuthority({});
    await eventually(() => expect(second.enrollment.tls?.current().ca).toContain(authority?.certificate.trim()));
    expect(notified).toHaveBeenCalled();
    const { chain } = await enroll(second);
    expect(chainTop(chain)).toBe(authority?.certificate);
  });
});

test("a replica with another sealing key does not start, and says why", async () => {
  const plane = await testEnrollment();
  const folder = await mkdtemp(join(tmpdir(), "reeve-sealing-"));
  const sealingKeyFile = join(folder, "other.key");
  await expect(plane.another({ sealingKeyFile })).rejects.toThrow("every replica needs the same key");
  await plane.close();
  await rm(folder, { recursive: true });
});

function chainTop(chain: string): string {
  return `${chain.slice(chain.lastIndexOf("-----BEGIN"))}`;
}
