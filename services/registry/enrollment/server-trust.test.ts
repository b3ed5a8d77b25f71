import { X509Certificate } from "node:crypto";
import { expect, test, vi } from "vitest";
import { authorityId, createAuthority } from "../../../lib/identity/authority.ts";
import { service, testAuthority, testMaterial } from "../../../lib/identity/testdata/certificates.ts";
import { createTlsHolder } from "../../../lib/identity/tls-source.ts";
import { serverAuthorityId, trustDevices } from "./server-trust.ts";

const authority = await testAuthority();
const other = await testAuthority();
const material = await testMaterial(authority, service("registry"));
const devices = await createAuthority({ commonName: "devices", ttlMs: 1000, now: Date.now() });
const leafOnly = { ...material, cert: new X509Certificate(material.cert).toString() };

test("the authority is found in the chain, or among those that are trusted", () => {
  expect(serverAuthorityId(material)).toBe(authorityId(authority.certificate));
  expect(serverAuthorityId(leafOnly)).toBe(authorityId(authority.certificate));
  expect(serverAuthorityId({ ...leafOnly, ca: other.certificate + authority.certificate })).toBe(
    authorityId(authority.certificate),
  );
});

test("a certificate from an authority that is not there is no error that waits for a device", () => {
  expect(() => serverAuthorityId({ ...leafOnly, ca: other.certificate })).toThrow("none of the trusted authorities");
});

test("the server shows its authority once, and trusts devices besides the control plane", () => {
  const authorities = { trusted: () => [devices.certificate], onChange: () => () => undefined };
  for (const own of [material, leafOnly]) {
    const { cert, ca, key } = trustDevices(createTlsHolder(own), authorities).current();
    expect(cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(cert).toContain(authority.certificate.trim());
    expect(ca).toContain(authority.certificate.trim());
    expect(ca).toContain(devices.certificate.trim());
    expect(key).toBe(material.key);
  }
});

test("a change of either is reported, until the listener stops", () => {
  const own = createTlsHolder(material);
  const listeners = new Set<() => void>();
  const onChange = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const notified = vi.fn();
  const stop = trustDevices(own, { trusted: () => [], onChange }).onChange(notified);
  own.replace(leafOnly);
  for (const listener of listeners) listener();
  expect(notified).toHaveBeenCalledTimes(2);
  stop();
  own.replace(material);
  expect(listeners.size).toBe(0);
  expect(notified).toHaveBeenCalledTimes(2);
});
