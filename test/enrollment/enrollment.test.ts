import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DeviceIdentityChange } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { EnrollmentState as State } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { formatJoinToken, parseJoinToken } from "../../lib/identity/join-token.ts";
import { testAuthority } from "../../lib/identity/testdata/certificates.ts";
import { createLogger } from "../../lib/log/log.ts";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { enrolledEnvironment, openEnrolled } from "../../services/device-agent/identity/enrolled.ts";
import { enrollmentFiles, readEnrollment } from "../../services/device-agent/identity/enrollment-file.ts";
import { type JoinOptions, joinControlPlane } from "../../services/device-agent/identity/join.ts";
import { keepRenewed, type Renewal } from "../../services/device-agent/identity/renewal.ts";
import { joinDevice } from "../../services/device-agent/main.ts";
import { loadTrust } from "../../services/device-agent/manifest/owner-trust.ts";
import { ownerTrustFile } from "../../services/device-agent/state-dir.ts";
import { startPlane } from "../../testkit/enrollment.ts";
import { eventually } from "../../testkit/eventually.ts";

let home = "";
let plane: Awaited<ReturnType<typeof startPlane>>;
const running: Renewal[] = [];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "reeve-machine-"));
  plane = await startPlane();
});
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
  await plane.close();
  rmSync(home, { recursive: true });
});

const why = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: unknown) => faultDetail(error)?.metadata.why ?? String(error),
  );
const machine = (name = "machine") => join(home, name);
const invite = (name = "web1", more: { replace?: boolean; autoConfirm?: boolean } = { autoConfirm: true }) =>
  plane.operator.createJoinToken({ name, labels: { role: "web", zone: "a" }, ...more });
const join_ = (token: string, stateDir = machine(), more: Partial<JoinOptions> = {}) =>
  joinControlPlane({ token, stateDir, ...more });

async function enroll(stateDir = machine(), more: { replace?: boolean } = {}) {
  const { token } = await invite("web1", { autoConfirm: true, ...more });
  const enrollment = await join_(token, stateDir);
  return { token, enrollment, files: enrollmentFiles(stateDir, enrollment.id) };
}

async function renewal(stateDir = machine(), onExpired: (error: Error) => void = () => undefined) {
  const enrollment = await readEnrollment(stateDir);
  if (enrollment === undefined) throw new Error("not enrolled");
  const { id, urls, domain: trustDomain } = enrollment;
  const logger = createLogger({ service: "device", level: "silent" });
  const made = await keepRenewed({ files: enrollmentFiles(stateDir, id), urls, trustDomain, logger, onExpired });
  running.push(made);
  return made;
}

test("a machine joins, an operator compares fingerprints and confirms, and the machine is a device", async () => {
  const { token, enrollment } = await invite("web1", {});
  const pending = Promise.withResolvers<string>();
  const joining = join_(token, machine(), { onPending: ({ fingerprint }) => pending.resolve(fingerprint) });
  const fingerprint = await pending.promise;
  const { enrollments } = await plane.operator.listEnrollments({ state: State.PENDING });
  expect(enrollments).toMatchObject([{ name: "web1", fingerprint }]);
  const deviceId = enrollments[0]?.deviceId ?? "";
  expect(await why(plane.enrollment.mayAttach(deviceId))).toBe("revoked");
  expect(await readEnrollment(machine())).toBeUndefined();

  await plane.operator.confirmEnrollment({ enrollmentId: enrollment?.id ?? "", fingerprint });
  expect(await joining).toMatchObject({ name: "web1", labels: { role: "web", zone: "a" }, urls: [plane.url] });
  expect((await readEnrollment(machine()))?.keyringVersion).toBe(5);
  await plane.enrollment.mayAttach(deviceId);
  const files = enrollmentFiles(machine(), enrollment?.id ?? "");
  for (const file of [files.keyFile, files.certFile, files.caFile, files.grantKeysFile]) {
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }
  expect(readFileSync(files.caFile, "utf8")).toBe(plane.authority.certificate);
  expect(readFileSync(files.grantKeysFile, "utf8")).toBe(`${Buffer.alloc(32, 7).toString("base64")}\n`);
});

test("what it was given when it joined is its environment from then on, and its name is not for its owner to change", async () => {
  const { token } = await invite();
  const enrollment = await join_(token, machine(), {
    settings: { REEVE_DEVICE_MODE: "all", REEVE_DEVICE_READ_ROOTS: "/srv" },
  });
  const env = enrolledEnvironment(machine(), enrollment, {
    REEVE_DEVICE_READ_ROOTS: "/home",
    REEVE_DEVICE_NAME: "other",
    HOME: "/root",
  });
  expect(env).toMatchObject({
    REEVE_DEVICE_NAME: "web1",
    REEVE_DEVICE_LABELS: "role=web,zone=a",
    REEVE_DEVICE_REGISTRY_URL: plane.url,
    REEVE_DEVICE_MODE: "all",
    REEVE_DEVICE_READ_ROOTS: "/home",
    REEVE_TRUST_DOMAIN: "reeve",
    HOME: "/root",
  });
});

test("the owner's keys that a machine is given are pinned when it joins, and settings of a file are not kept", async () => {
  const key = generateSigningKey();
  const env = {
    REEVE_DEVICE_STATE_DIR: machine(),
    REEVE_DEVICE_MANIFEST_KEYS: Buffer.from(key.raw).toString("base64"),
    REEVE_DEVICE_READ_ROOTS: "/srv",
    REEVE_DEVICE_MODE: "all",
  };
  const notKept = new Set(["REEVE_DEVICE_READ_ROOTS"]);
  const { settings } = await joinDevice(env, { token: (await invite()).token, notKept });
  expect([settings.REEVE_DEVICE_MODE, settings.REEVE_DEVICE_READ_ROOTS]).toEqual(["all", undefined]);
  expect((await loadTrust(ownerTrustFile(machine())))?.pins.map(({ keyId }) => keyId)).toEqual([key.keyId]);
});

test("a file with a token is for a device that has not joined, and is not needed after that", async () => {
  const tokenFile = join(home, "token");
  writeFileSync(tokenFile, `${(await invite()).token}\n`);
  const joined = await openEnrolled(machine(), { HOME: "/home/ann" }, { tokenFile });
  expect(joined.env).toMatchObject({ REEVE_DEVICE_NAME: "web1", REEVE_DEVICE_READ_ROOTS: process.cwd() });
  rmSync(tokenFile);
  expect(await openEnrolled(machine(), {}, { tokenFile })).toMatchObject({ enrollment: { name: "web1" } });
  expect(await openEnrolled(machine("other"), { A: "b" }, {})).toEqual({ env: { A: "b" }, enrollment: undefined });
});

test("a device renews over mTLS, and its numbers never come twice", async () => {
  const { files } = await enroll();
  const before = readFileSync(files.certFile, "utf8");
  const one = await renewal();
  await one.renew();
  const after = readFileSync(files.certFile, "utf8");
  expect(after).not.toBe(before);
  await one.renew();
  await (await renewal()).renew();
  expect(readFileSync(files.renewCountFile, "utf8")).toBe("3\n");
});

test("renews at half-life by itself", async () => {
  await plane.close();
  plane = await startPlane({ certificateTtlMs: 6000 });
  const { files } = await enroll();
  const before = readFileSync(files.certFile, "utf8");
  await renewal();
  await eventually(() => expect(readFileSync(files.certFile, "utf8")).not.toBe(before));
});

test("a copied state folder locks the device: neither of the two takes part any more", async () => {
  await enroll();
  cpSync(machine(), machine("copy"), { recursive: true });
  await (await renewal(machine("copy"))).renew();
  const original = await renewal();
  expect(await why(original.renew())).toBe("cloned");
  expect(await why((await renewal(machine("copy"))).renew())).toBe("cloned");
  const [locked] = (await plane.operator.listEnrollments({})).enrollments;
  expect(locked).toMatchObject({ state: State.LOCKED });
  expect(plane.ended).toEqual([locked?.deviceId]);
  await eventually(() => expect(plane.records.at(-1)).toMatchObject({ change: DeviceIdentityChange.LOCKED }));
});

test("a device that was cloned enrolls again with a new key, and the copy stays out", async () => {
  await enroll();
  cpSync(machine(), machine("copy"), { recursive: true });
  await (await renewal(machine("copy"))).renew();
  await why((await renewal()).renew());
  await enroll(machine(), { replace: true });
  await (await renewal()).renew();
  expect(await why((await renewal(machine("copy"))).renew())).toBe("revoked");
});

test("a removed device is refused, and its name can be enrolled again", async () => {
  await enroll();
  await plane.operator.removeDevice({ device: "web1" });
  expect(await why((await renewal()).renew())).toBe("revoked");
  await enroll(machine("new"));
  await (await renewal(machine("new"))).renew();
});

test("a locked device renews again once it is unlocked", async () => {
  await enroll();
  await plane.operator.lockDevice({ device: "web1", why: "lost" });
  expect(await why((await renewal()).renew())).toBe("lost");
  await plane.operator.unlockDevice({ device: "web1" });
  await (await renewal()).renew();
});

test("a device whose certificate has expired says so and stops", async () => {
  await plane.close();
  plane = await startPlane({ certificateTtlMs: 1000 });
  await enroll();
  await plane.operator.lockDevice({ device: "web1" });
  const expired = Promise.withResolvers<Error>();
  const late = await renewal(machine(), expired.resolve);
  expect((await expired.promise).message).toContain("reeve device join-token");
  expect(await why(late.renew())).toBe("expired");
  await expect(renewal().then((one) => one.close())).resolves.toBeUndefined();
});

test("a token is good for one key: another machine is refused, the same one may ask again", async () => {
  const { token } = await enroll();
  expect(await why(join_(token, machine("other")))).toBe("used");
  expect(await join_(token)).toMatchObject({ name: "web1" });
});

test("joining goes on with the same key after a break", async () => {
  const { token, enrollment } = await invite("web1", {});
  const shown: string[] = [];
  for (let n = 0; n < 2; n++) {
    const leaving = new AbortController();
    const onPending: JoinOptions["onPending"] = ({ fingerprint }) => {
      shown.push(fingerprint);
      leaving.abort();
    };
    await expect(join_(token, machine(), { signal: leaving.signal, onPending })).rejects.toThrow();
  }
  expect(shown[1]).toBe(shown[0]);
  await plane.operator.confirmEnrollment({ enrollmentId: enrollment?.id ?? "", fingerprint: shown[0] ?? "" });
  await join_(token);
});

test("nothing is sent to a control plane of another authority", async () => {
  const { token } = await invite();
  const other = await startPlane();
  const forged = formatJoinToken({ ...parseJoinToken(token), urls: [other.url] });
  await expect(join_(forged)).rejects.toThrow("is not the control plane that this token is for: nothing was sent");
  expect(other.records.map(({ change }) => change)).toEqual([DeviceIdentityChange.AUTHORITY_ROTATED]);
  await other.close();
});

test("a server that shows the right authority without its signature is not believed", async () => {
  const { token } = await invite();
  // It has a copy of the authority's certificate, which is no secret, and a certificate of its own authority.
  const own = await testAuthority();
  const other = await startPlane({ authority: { ...own, certificate: own.certificate + plane.authority.certificate } });
  const forged = formatJoinToken({ ...parseJoinToken(token), urls: [other.url] });
  expect(await why(join_(forged))).toBe("foreign");
  expect(other.records.map(({ change }) => change)).not.toContain(DeviceIdentityChange.REFUSED);
  await other.close();
});

test("another service of the control plane is not the registry", async () => {
  const { token } = await invite();
  const policy = await startPlane({ serverIs: "policy", authority: plane.authority });
  const forged = formatJoinToken({ ...parseJoinToken(token), urls: [policy.url] });
  expect(await why(join_(forged))).toBe("role");
  await policy.close();
});

test("an address that does not answer is passed over", async () => {
  const { token } = await invite();
  const parsed = parseJoinToken(token);
  await join_(formatJoinToken({ ...parsed, urls: ["https://127.0.0.1:1", ...parsed.urls] }));
  await expect(join_(formatJoinToken({ ...parsed, urls: ["https://127.0.0.1:1"] }), machine("x"))).rejects.toThrow(
    "is not reached",
  );
});
