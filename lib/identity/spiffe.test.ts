import { X509Certificate } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { Authority } from "./authority.ts";
import { formatIdentity, type Identity, identityOf, isSameIdentity, parseIdentity } from "./spiffe.ts";
import { device, oddMaterial, service, testAuthority, testMaterial } from "./testdata/certificates.ts";

const DEVICE = device("dev-0123456789abcdef");

test.each<[string, Identity]>([
  ["spiffe://reeve/service/policy", service("policy")],
  ["spiffe://reeve/device/dev-0123456789abcdef", DEVICE],
  [
    "spiffe://fleet.example.org/service/registry",
    { kind: "service", name: "registry", trustDomain: "fleet.example.org" },
  ],
])("%s is read and written the same", (uri, identity) => {
  expect(parseIdentity(uri)).toEqual(identity);
  expect(formatIdentity(identity)).toBe(uri);
});

test.each([
  "",
  "spiffe://reeve",
  "spiffe://reeve/",
  "spiffe://reeve/service",
  "spiffe://reeve/service/",
  "spiffe://reeve/service/policy/",
  "spiffe://reeve/service/policy/extra",
  "spiffe://reeve//service/policy",
  "spiffe://reeve/service/../policy",
  "spiffe://reeve/service/Policy",
  "spiffe://reeve/service/%70olicy",
  "spiffe://reeve/service/policy?x=1",
  "spiffe://reeve/service/policy#x",
  "spiffe://reeve/service/policy\n",
  "spiffe://Reeve/service/policy",
  "SPIFFE://reeve/service/policy",
  "spiffe://user@reeve/service/policy",
  "spiffe://reeve:443/service/policy",
  "spiffe:///service/policy",
  "spiffe://reeve/device/laptop",
  "spiffe://reeve/device/dev-0123456789ABCDEF",
  "spiffe://reeve/device/dev-0123456789abcdef0",
  "spiffe://reeve/operator/anna",
  "https://reeve/service/policy",
  `spiffe://reeve/service/${"a".repeat(64)}`,
  `spiffe://${"a".repeat(255)}/service/policy`,
])("%j is nobody", (uri) => {
  expect(parseIdentity(uri)).toBeUndefined();
});

test("two identities are the same only where all of them is", () => {
  expect(isSameIdentity(service("policy"), service("policy"))).toBe(true);
  expect(isSameIdentity(service("policy"), service("registry"))).toBe(false);
  expect(isSameIdentity(service("policy"), { ...service("policy"), trustDomain: "other" })).toBe(false);
  expect(isSameIdentity({ ...service("dev-0123456789abcdef") }, DEVICE)).toBe(false);
});

let authority: Authority;
beforeAll(async () => {
  authority = await testAuthority();
});

test("a certificate is its only URI name, whatever else it is good for", async () => {
  const { cert } = await testMaterial(authority, DEVICE);
  expect(identityOf(new X509Certificate(cert))).toEqual(DEVICE);
});

const uri = (value: string) => ({ type: "url" as const, value });
const dns = (value: string) => ({ type: "dns" as const, value });

test.each([
  ["no names", []],
  ["no URI name", [dns("registry.example.org")]],
  ["two URI names", [uri("spiffe://reeve/service/registry"), uri("spiffe://reeve/service/policy")]],
  ["a URI name and one that is no SPIFFE id", [uri("spiffe://reeve/service/registry"), uri("https://example.org")]],
  ["a URI name that is no SPIFFE id", [uri("https://example.org/service/registry")]],
  ["an identity hidden in another name", [dns("a, URI:spiffe://reeve/service/registry, DNS:b")]],
  ["an identity hidden in a URI", [uri("https://x/, URI:spiffe://reeve/service/registry")]],
])("a certificate with %s is nobody's", async (_what, names) => {
  const { cert } = await oddMaterial(authority, names);
  expect(identityOf(new X509Certificate(cert))).toBeUndefined();
});
