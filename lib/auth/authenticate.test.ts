import { expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { device, service } from "../identity/testdata/certificates.ts";
import { authenticateByCertificate, firstThatKnows } from "./authenticate.ts";
import { identityRefused, type Peer, problemOf, requireSoundPeer } from "./peer.ts";
import type { Authenticate, Principal } from "./principal.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const DEVICE = device("dev-0123456789abcdef");

function peer(of: Partial<Peer>): Peer {
  return {
    identity: service("registry"),
    fingerprint: "00",
    serial: "01",
    notAfterMs: NOW,
    claimed: "spiffe://x",
    ...of,
  };
}

function refusalOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error: unknown) {
    return { reason: faultDetail(error)?.reason, ...faultDetail(error)?.metadata };
  }
}

const byCertificate = authenticateByCertificate({ trustDomain: "reeve", acceptServices: ["registry"], now: () => NOW });

test("a certificate is a principal, and no certificate is nobody", () => {
  expect(byCertificate(undefined, peer({}))).toEqual({
    id: "service/registry",
    kind: "service",
    roles: [Role.SERVICE],
    name: "registry",
  });
  expect(byCertificate(undefined, peer({ identity: DEVICE }))).toEqual({
    id: "dev-0123456789abcdef",
    kind: "device",
    roles: [Role.DEVICE],
    name: "dev-0123456789abcdef",
  });
  expect(byCertificate("Bearer x", undefined)).toBeUndefined();
});

test.each<[string, Partial<Peer>, string, string]>([
  ["with a problem", { problem: "foreign" }, "foreign", "spiffe://x"],
  ["past its end", { notAfterMs: NOW - 1 }, "expired", "spiffe://x"],
  ["of nobody", { identity: undefined, claimed: "" }, "malformed", ""],
  [
    "of another trust domain",
    { identity: { ...DEVICE, trustDomain: "b" } },
    "foreign",
    "spiffe://b/device/dev-0123456789abcdef",
  ],
  ["of another service", { identity: service("policy") }, "role", "spiffe://reeve/service/policy"],
])("a certificate %s is refused with its reason and its name", (_what, of, why, identity) => {
  const reason = ErrorReason.IDENTITY_REFUSED;
  expect(refusalOf(() => byCertificate(undefined, peer(of)))).toEqual({ reason, why, identity });
});

test("an authenticator may refuse a peer, now or later, each time", async () => {
  const check = vi.fn(() => {
    throw identityRefused("revoked", DEVICE);
  });
  const now = authenticateByCertificate({ trustDomain: "reeve", check, now: () => NOW });
  const one = peer({ identity: DEVICE });
  expect(refusalOf(() => now(undefined, one))).toMatchObject({ why: "revoked" });
  expect(refusalOf(() => now(undefined, one))).toMatchObject({ why: "revoked" });
  const later = authenticateByCertificate({ trustDomain: "reeve", check: async () => check(), now: () => NOW });
  await expect(later(undefined, one)).rejects.toThrow("revoked");
  expect(check).toHaveBeenCalledTimes(3);
});

test.each([
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "not_yet"],
  ["INVALID_PURPOSE", "malformed"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "foreign"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "foreign"],
  ["CERT_SIGNATURE_FAILURE", "foreign"],
  ["ANYTHING_NEW", "foreign"],
])("%s means %s", (code, why) => {
  expect(problemOf(code)).toBe(why);
  expect(problemOf(Object.assign(new Error(code), { code }))).toBe(why);
});

test("a sound peer is let through", () => {
  expect(() => requireSoundPeer(peer({}), NOW)).not.toThrow();
});

const known: Principal = { id: "a", kind: "agent", roles: [Role.AGENT], name: "a" };

test("the first that knows decides, and the rest is not asked", async () => {
  const unknown: Authenticate = () => undefined;
  const later: Authenticate = async () => undefined;
  const knows = vi.fn<Authenticate>(() => known);
  const never = vi.fn<Authenticate>();
  const shown = peer({});
  expect(firstThatKnows(unknown, knows, never)("Bearer x", shown)).toBe(known);
  expect(knows).toHaveBeenCalledWith("Bearer x", shown);
  await expect(firstThatKnows(unknown, later, unknown, knows, never)("Bearer x", shown)).resolves.toBe(known);
  await expect(firstThatKnows(later, unknown)("Bearer x")).resolves.toBeUndefined();
  expect(firstThatKnows()("Bearer x")).toBeUndefined();
  expect(never).not.toHaveBeenCalled();
});

test("a refusal is the end: no other authenticator is asked", () => {
  const never = vi.fn<Authenticate>();
  expect(refusalOf(() => firstThatKnows(byCertificate, never)("Bearer x", peer({ problem: "expired" })))).toMatchObject(
    {
      why: "expired",
    },
  );
  expect(never).not.toHaveBeenCalled();
});
