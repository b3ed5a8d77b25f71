import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkMaterial } from "../../lib/identity/tls-source.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext } from "../testing/fake-context.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-certs-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const path = (...parts: string[]) => join(folder, ...parts);
const reeve = async (...words: string[]) => {
  const context = createFakeContext();
  const code = await runCli(words, context);
  return { code, out: context.stdoutText(), err: context.stderrText() };
};
const init = () => reeve("service-ca", "init", "--out", path("ca"));
const issue = (...more: string[]) =>
  reeve("service-ca", "issue", "--ca", path("ca"), "--out", path("registry"), ...more);

test("an authority and a service's certificate fit together, and keys are for their owner's eyes", async () => {
  expect(await init()).toMatchObject({ code: 0 });
  const issued = await issue("--service", "registry", "--dns", "localhost", "--ip", "127.0.0.1");
  expect(issued).toMatchObject({ code: 0 });
  expect(issued.out).toContain(`REEVE_TLS_CERT_FILE=${path("registry", "tls.crt")}\n`);
  const [cert, key, ca] = ["tls.crt", "tls.key", "ca.crt"].map((name) => readFileSync(path("registry", name), "utf8"));
  checkMaterial({ cert: cert ?? "", key: key ?? "", ca: ca ?? "" });
  expect(statSync(path("registry", "tls.key")).mode & 0o777).toBe(0o600);
  expect(statSync(path("ca", "ca.key")).mode & 0o777).toBe(0o600);
});

test("shows whom a certificate names, and who signed it", async () => {
  await init();
  await issue("--service", "policy", "--dns", "policy.example", "--trust-domain", "example.org");
  const { out } = await reeve("service-ca", "show", path("registry", "tls.crt"));
  expect(out).toContain("identity  spiffe://example.org/service/policy");
  expect(out).toContain("DNS:policy.example");
  expect(out).toContain("identity  an authority");
  const { certificates } = JSON.parse((await reeve("service-ca", "show", path("registry", "tls.crt"), "--json")).out);
  expect(certificates).toMatchObject([{ identity: "spiffe://example.org/service/policy" }, { isAuthority: true }]);
});

test("a device that is dialed gets one too", async () => {
  await init();
  expect(await issue("--device", "dev-0123456789abcdef", "--ip", "::1")).toMatchObject({ code: 0 });
  expect((await reeve("service-ca", "show", path("registry", "tls.crt"))).out).toContain("device/dev-0123456789abcdef");
});

test("writes nothing over", async () => {
  await init();
  const key = readFileSync(path("ca", "ca.key"), "utf8");
  expect(await init()).toMatchObject({ code: 2, err: expect.stringContaining("a key is never written over") });
  expect(readFileSync(path("ca", "ca.key"), "utf8")).toBe(key);
  await issue("--service", "registry");
  expect(await issue("--service", "policy")).toMatchObject({ code: 2 });
});

test.each([
  ["no holder", [], "one of --service and --device is needed"],
  ["two at once", ["--service", "registry", "--device", "dev-0123456789abcdef"], "one of --service and --device"],
  ["an invalid name", ["--service", "Registry!"], "is no identity"],
  ["no IP address", ["--service", "registry", "--ip", "localhost"], "--ip"],
  ["no DNS name", ["--service", "registry", "--dns", "a b"], "--dns"],
  ["no length of time", ["--service", "registry", "--ttl", "soon"], "--ttl"],
])("refuses a certificate for %s", async (_, words, message) => {
  await init();
  expect(await issue(...words)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});

test("says what to do where there is no authority, or no certificate", async () => {
  expect(await issue("--service", "registry")).toMatchObject({
    code: 2,
    err: expect.stringContaining("reeve service-ca init"),
  });
  writeFileSync(path("x"), "none");
  expect(await reeve("service-ca", "show", path("x"))).toMatchObject({
    code: 2,
    err: expect.stringContaining("no certificate"),
  });
  expect(await reeve("service-ca", "show", path("y"))).toMatchObject({ code: 2 });
});
