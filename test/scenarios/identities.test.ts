import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { PeerService } from "../../gen/ts/reeve/cluster/v1/peer_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentService, EnrollmentState } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { KeyService } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { chainOf, createAuthority, issueCertificate } from "../../lib/identity/authority.ts";
import { createRequest, generateTlsKey, tlsKeyToPem } from "../../lib/identity/request.ts";
import { staticTls, type TlsSource } from "../../lib/identity/tls-source.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { enrollmentFiles, readEnrollment } from "../../services/device-agent/identity/enrollment-file.ts";
import { type Distributed, type DistributedDevice, startDistributed } from "../../testkit/distributed.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type OidcProvider, startOidcProvider } from "../../testkit/oidc-provider.ts";
import { startServiceProcess } from "../../testkit/service-process.ts";

/** Who is not let in, each reported why in a word that programs can act on. */
const HOUR_MS = 3_600_000;

let provider: OidcProvider;
let many: Distributed;
let operator: { enrollments: Client<typeof EnrollmentService>; registry: RegistryClient };
beforeAll(async () => {
  provider = await startOidcProvider();
  many = await startDistributed({
    env: {
      REEVE_OIDC_ISSUER: provider.issuer,
      REEVE_OIDC_AUDIENCE: provider.clientId,
      REEVE_OIDC_ROLES: "admins=operator",
    },
  });
  const transport = createServiceTransport({ baseUrl: many.registry.url, token: many.tokens.operator, ca: many.ca });
  operator = {
    enrollments: createClient(EnrollmentService, transport),
    registry: registryClient(transport),
  };
});
afterAll(async () => {
  await many?.close();
  await provider?.close();
});

/** The reason and the why of an error, such as "IDENTITY_REFUSED revoked". */
async function refusalOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const detail = faultDetail(error);
  if (detail === undefined) return `no refusal: ${String(error)}`;
  const name = Object.entries(ErrorReason).find(([, value]) => value === detail.reason)?.[0];
  return `${name} ${detail.metadata.why ?? ""}`.trim();
}

/** The certificate that a device has been given, as a thief of its disk would use it. */
async function stolenFrom({ stateDir }: DistributedDevice): Promise<TlsSource> {
  const enrollment = await readEnrollment(stateDir);
  const files = enrollmentFiles(stateDir, enrollment?.id ?? "");
  const [cert, key, ca] = [files.certFile, files.keyFile, files.caFile].map((file) => readFileSync(file, "utf8"));
  return staticTls({ cert: cert ?? "", key: key ?? "", ca: ca ?? "" });
}

async function renewWith(tls: TlsSource): Promise<unknown> {
  const transport = createServiceTransport({ baseUrl: many.registry.url, tls, serverName: REGISTRY });
  const request = await createRequest(generateTlsKey(), {
    kind: "device",
    id: "dev-0123456789abcdef",
    trustDomain: "reeve",
  });
  const client = createClient(EnrollmentService, transport);
  return client.renewCertificate({ certificateRequest: request, renewCount: 1n }).finally(() => transport.close());
}

const REGISTRY = { kind: "service", name: "registry", trustDomain: "reeve" } as const;

/** A device's certificate from some authority. */
async function certificateFrom(now: number): Promise<TlsSource> {
  const authority = await createAuthority({ commonName: "elsewhere", ttlMs: 100 * HOUR_MS, now });
  const key = generateTlsKey();
  const leaf = await issueCertificate(authority, createPublicKey(key), {
    identity: { kind: "device", id: "dev-0123456789abcdef", trustDomain: "reeve" },
    ttlMs: HOUR_MS,
    now,
  });
  return staticTls({ cert: chainOf(leaf, authority), key: tlsKeyToPem(key), ca: many.ca });
}

function deviceNamed(name: string): DistributedDevice {
  const found = many.devices.find((device) => device.name === name);
  if (found === undefined) throw new Error(`no device ${name}`);
  return found;
}

const linkOf = async (name: string) => (await operator.registry.getDevice({ device: name })).device?.link;

describe("a device", () => {
  test("whose certificate another authority signed is refused as foreign", async () => {
    expect(await refusalOf(renewWith(await certificateFrom(Date.now())))).toBe("IDENTITY_REFUSED foreign");
  });

  test("whose certificate another authority signed is foreign also after it has expired", async () => {
    expect(await refusalOf(renewWith(await certificateFrom(Date.now() - 10 * HOUR_MS)))).toBe(
      "IDENTITY_REFUSED foreign",
    );
  });

  test("whose certificate has expired is refused as expired", async () => {
    const files = await many.authority.expiredDevice();
    expect(await refusalOf(renewWith(staticTls(files)))).toBe("IDENTITY_REFUSED expired");
  });

  test("that was removed is refused as revoked, although its certificate is good for a day", async () => {
    const tls = await stolenFrom(deviceNamed("third"));
    await operator.enrollments.removeDevice({ device: "third", why: "sold" });
    expect(await refusalOf(renewWith(tls))).toBe("IDENTITY_REFUSED revoked");
    await eventually(() => expect(deviceNamed("third").process.log.join("\n")).toContain("revoked"));
  });

  test("whose state is used twice is locked, and its own stream ends", async () => {
    const device = deviceNamed("second");
    const copy = join(many.folder, "copy-of-second");
    await cp(device.stateDir, copy, { recursive: true });
    const clone = await startServiceProcess("device", 0, {
      REEVE_DEVICE_STATE_DIR: copy,
      REEVE_LOG_LEVEL: "info",
    });
    try {
      // Both dial, and one of them with a number that the other has used.
      device.proxy.cut();
      await eventually(async () => {
        const { enrollments } = await operator.enrollments.listEnrollments({ state: EnrollmentState.LOCKED });
        expect(enrollments.map(({ name }) => name)).toEqual(["second"]);
      });
      await eventually(async () => expect(await linkOf("second")).toBe(LinkState.OFFLINE));
      expect(await refusalOf(renewWith(await stolenFrom(device)))).toBe("IDENTITY_REFUSED cloned");
    } finally {
      await clone.stop();
    }
  });

  test("that is locked comes back when it is unlocked, and the clone does not matter any more", async () => {
    await operator.enrollments.unlockDevice({ device: "second" });
    await eventually(async () => expect(await linkOf("second")).toBe(LinkState.ONLINE));
  });
});

describe("a replica", () => {
  test.each(["policy", "nats", "device"])("with the certificate of %s is no registry to policy", async (name) => {
    const { certFile, keyFile, caFile } = await many.authority.issue(name);
    const [cert = "", key = "", ca = ""] = [certFile, keyFile, caFile].map((file) => readFileSync(file, "utf8"));
    const transport = createServiceTransport({
      baseUrl: many.policy.url,
      tls: staticTls({ cert, key, ca }),
      serverName: { kind: "service", name: "policy", trustDomain: "reeve" },
    });
    expect(await refusalOf(createClient(KeyService, transport).getGrantKey({}))).toBe("IDENTITY_REFUSED role");
    transport.close();
  });

  test.each(["policy", "nats"])("with the certificate of %s has nothing to call at a registry", async (name) => {
    const { certFile, keyFile, caFile } = await many.authority.issue(name);
    const [cert = "", key = "", ca = ""] = [certFile, keyFile, caFile].map((file) => readFileSync(file, "utf8"));
    const tls = staticTls({ cert, key, ca });
    const transport = createServiceTransport({ baseUrl: many.registry.url, tls, serverName: REGISTRY });
    expect(await refusalOf(registryClient(transport).listDevices({}))).toBe("IDENTITY_REFUSED role");
    transport.close();
  });

  test("that shows the certificate of another service is not believed to be policy", async () => {
    const { certFile, keyFile, caFile } = await many.authority.issue("registry");
    const [cert = "", key = "", ca = ""] = [certFile, keyFile, caFile].map((file) => readFileSync(file, "utf8"));
    // The registries' balancer in place of policy's.
    const transport = createServiceTransport({
      baseUrl: many.registry.url,
      tls: staticTls({ cert, key, ca }),
      serverName: { kind: "service", name: "policy", trustDomain: "reeve" },
    });
    expect(await refusalOf(createClient(KeyService, transport).getGrantKey({}))).toBe("IDENTITY_REFUSED role");
    transport.close();
  });
});

describe("a person", () => {
  const listWith = async (token: string) => {
    const transport = createServiceTransport({ baseUrl: many.registry.url, token, ca: many.ca });
    return registryClient(transport)
      .listDevices({})
      .finally(() => transport.close());
  };
  const claims = (change: object = {}) => {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: provider.issuer,
      aud: provider.clientId,
      sub: "ada",
      iat: now,
      exp: now + 600,
      groups: ["admins"],
      ...change,
    };
  };

  test("with a token of the provider for this control plane is let in", async () => {
    expect((await listWith(await provider.sign(claims()))).devices.length).toBeGreaterThan(0);
  });

  test("with a token of another audience is refused for its audience", async () => {
    const token = await provider.sign(claims({ aud: provider.otherClientId }));
    expect(await refusalOf(listWith(token))).toBe("TOKEN_REFUSED audience");
  });
});

test("a certificate of another service is refused by every replica that it asks as if it were one of them", async () => {
  const { certFile, keyFile, caFile } = await many.authority.issue("policy");
  const [cert, key, ca] = [certFile, keyFile, caFile].map((file) => readFileSync(file, "utf8"));
  const tls = staticTls({ cert: cert ?? "", key: key ?? "", ca: ca ?? "" });
  for (const { url } of many.registries) {
    const transport = createServiceTransport({ baseUrl: url, tls });
    const { wake } = createClient(PeerService, transport);
    expect(await refusalOf(wake({}))).toBe("IDENTITY_REFUSED role");
    transport.close();
  }
});

/** How long to wait for what other processes do. */
