import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonGeneralName } from "@peculiar/x509";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type NatsServer, startNatsServer } from "../../testkit/nats-server.ts";
import { ConfigError } from "../config/config.ts";
import { SILENT_LOGGER } from "../events/bus.ts";
import { reasonOf } from "../fault/fault.ts";
import { PrivateFileError } from "../files/private-file.ts";
import { oddMaterial, service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createLogger } from "../log/log.ts";
import type { NatsSettings } from "./nats-keys.ts";
import { natsOptions } from "./nats-options.ts";
import { openBus } from "./open-bus.ts";
import { natsOperator } from "./testdata/nats-operator.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-nats-options-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const secretOf = (secret: string | (() => string) | undefined) => (typeof secret === "function" ? secret() : secret);
const optionsOf = (settings: NatsSettings) => natsOptions(settings, "test", SILENT_LOGGER);

test("there is no NATS where no server is named", () => {
  expect(optionsOf({ natsUser: "u" })).toBeUndefined();
});

test("a password that was replaced is what the next login uses, and one that is gone stays what it was", () => {
  const natsPasswordFile = file("rotated", "old\n");
  const options = optionsOf({ natsUrl: "nats://127.0.0.1:4222", natsUser: "u", natsPasswordFile });
  expect(secretOf(options?.pass)).toBe("old");
  file("rotated", "new\n");
  expect(secretOf(options?.pass)).toBe("new");
  rmSync(natsPasswordFile);
  expect(secretOf(options?.pass)).toBe("new");
});

test("everything that is set reaches the connection", () => {
  const password = file("password", "pass word\n");
  const [natsCaFile, natsCertFile, natsKeyFile] = [file("ca", "ca"), file("cert", "cert"), file("key", "key")];
  const options = optionsOf({
    natsUrl: "tls://one.example:4222, tls://two.example",
    natsUser: "registry",
    natsPasswordFile: password,
    natsCaFile,
    natsCertFile,
    natsKeyFile,
  });
  expect({ ...options, pass: secretOf(options?.pass) }).toEqual({
    servers: ["tls://one.example:4222", "tls://two.example"],
    name: "test",
    logger: SILENT_LOGGER,
    user: "registry",
    pass: "pass word",
    tls: { caFile: natsCaFile, certFile: natsCertFile, keyFile: natsKeyFile },
  });
  const natsCredsFile = file("creds", "creds");
  expect(secretOf(optionsOf({ natsUrl: "nats://127.0.0.1:4222", natsCredsFile })?.creds)).toBe("creds");
});

test.each([
  "nats://nats.example:4222",
  "nats.example:4222",
  "nats://10.0.0.5",
  "nats://127.0.0.1.example",
  "nats://[fd00::1]:4222",
])("%s is refused in cleartext, unless that is allowed or TLS is on", (natsUrl) => {
  expect(() => optionsOf({ natsUrl })).toThrow("REEVE_NATS_ALLOW_PLAINTEXT");
  expect(() => optionsOf({ natsUrl: `nats://127.0.0.1,${natsUrl}` })).toThrow(ConfigError);
  expect(optionsOf({ natsUrl, natsAllowPlaintext: true })?.tls).toBeUndefined();
  expect(optionsOf({ natsUrl, natsCaFile: file("ca", "ca") })?.tls).toBeDefined();
});

test.each(["nats://127.0.0.1:4222", "nats://[::1]:4222", "localhost:4222"])("%s may be cleartext", (natsUrl) => {
  expect(optionsOf({ natsUrl })?.servers).toEqual([natsUrl]);
});

test("every problem is named at once", () => {
  const natsUrl = "nats://u:hunter2@nats.example";
  const settings = { natsUrl, natsUser: "u", natsCertFile: "c", natsCredsFile: "x" };
  expect(() => optionsOf(settings)).toThrow(/REEVE_NATS_KEY_FILE.*REEVE_NATS_PASSWORD_FILE.*exclude.*no password/s);
  expect(() => optionsOf(settings)).not.toThrow(/hunter2/);
  expect(() => optionsOf({ natsUrl: "http://127.0.0.1" })).toThrow("must be servers");
});

test.each(["natsPasswordFile", "natsCredsFile", "natsKeyFile"] as const)("%s must not be readable by others", (key) => {
  const more = {
    natsPasswordFile: { natsUser: "u" },
    natsCredsFile: {},
    natsKeyFile: { natsCertFile: file("cert", "") },
  }[key];
  const settings = { natsUrl: "nats://127.0.0.1", ...more, [key]: file("open", "secret", 0o644) };
  expect(() => optionsOf(settings)).toThrow(PrivateFileError);
});

describe("a real server with a login, TLS and client certificates", () => {
  let server: NatsServer;
  let plain: NatsServer;
  let good: NatsSettings;
  beforeAll(async () => {
    const [authority, foreign] = await Promise.all([testAuthority(), testAuthority()]);
    const own = await testMaterial(authority, service("nats"));
    const registry = await testMaterial(authority, service("registry"));
    const tls = [
      "--tls",
      "--tlsverify",
      `--tlscert=${file("server.pem", own.cert)}`,
      `--tlskey=${file("server.key", own.key)}`,
    ];
    const login = ["--user", "registry", "--pass", "s3cret"];
    server = await startNatsServer({ args: [...tls, `--tlscacert=${file("ca.pem", own.ca)}`, ...login] });
    plain = await startNatsServer();
    good = {
      natsUrl: `nats://localhost:${server.port}`,
      natsUser: "registry",
      natsPasswordFile: file("pass", "s3cret\n"),
      natsCaFile: join(folder, "ca.pem"),
      natsCertFile: file("client.pem", registry.cert),
      natsKeyFile: file("client.key", registry.key),
    };
    file("foreign.pem", foreign.certificate);
  }, 120_000);
  afterAll(() => Promise.all([server.close(), plain.close()]));

  const lines: string[] = [];
  const logger = createLogger({ service: "test", destination: { write: (line: string) => void lines.push(line) } });
  const reason = (settings: NatsSettings) =>
    openBus(settings, "test", logger).then(async (bus) => {
      await bus.close();
      return "it connected";
    }, reasonOf);

  test("lets us in, by nats:// and by tls://, and what it lacks is logged", async () => {
    for (const natsUrl of [good.natsUrl, good.natsUrl?.replace("nats:", "tls:")]) {
      const bus = await openBus({ ...good, natsUrl }, "test", logger);
      const status = bus.status();
      expect(status).toMatchObject({ connected: true, server: expect.stringMatching(/^\d/) });
      for (const sentence of status.degraded) expect(lines.join("")).toContain(sentence);
      await bus.close();
    }
    expect(lines.join("")).not.toContain("s3cret");
  });

  test("does not let us in with another password, or without our certificate", async () => {
    const natsPasswordFile = file("wrong", "wrong");
    expect(await reason({ ...good, natsPasswordFile })).toBe(ErrorReason.NOT_READY);
    const { natsCertFile: _cert, natsKeyFile: _key, ...withoutCertificate } = good;
    expect(await reason(withoutCertificate)).toBe(ErrorReason.NOT_READY);
  });

  test("is not trusted when its certificate is from another authority", async () => {
    expect(await reason({ ...good, natsCaFile: join(folder, "foreign.pem") })).toBe(ErrorReason.NOT_READY);
  });

  test("a server that claims to know no TLS does not get the password in cleartext", async () => {
    expect(await reason({ ...good, natsUrl: plain.url })).toBe(ErrorReason.NOT_READY);
    expect(await reason({ natsUrl: plain.url })).toBe("it connected");
  });
});

test("a server's certificate must be for the address that it is reached by, also where that is an IP address", async () => {
  const authority = await testAuthority();
  const logger = createLogger({ service: "test", level: "silent" });
  const natsCaFile = file("own-ca.pem", authority.certificate);
  const reach = async (name: JsonGeneralName): Promise<string[]> => {
    const { cert, key } = await oddMaterial(authority, [name]);
    const tls = ["--tls", `--tlscert=${file("odd.pem", cert)}`, `--tlskey=${file("odd.key", key)}`];
    const server = await startNatsServer({ args: tls });
    const reached: string[] = [];
    for (const host of ["127.0.0.1", "localhost"]) {
      const bus = await openBus({ natsUrl: `tls://${host}:${server.port}`, natsCaFile }, "test", logger).catch(
        () => undefined,
      );
      if (bus !== undefined) reached.push(host);
      await bus?.close();
    }
    await server.close();
    return reached;
  };
  expect(await reach({ type: "ip", value: "127.0.0.1" })).toEqual(["127.0.0.1"]);
  expect(await reach({ type: "dns", value: "localhost" })).toEqual(["localhost"]);
  expect(await reach({ type: "dns", value: "elsewhere" })).toEqual([]);
}, 60_000);

test("a server with JWT logins lets in by a credentials file, and none by another's", async () => {
  const [ours, theirs] = [natsOperator(), natsOperator()];
  const server = await startNatsServer({ args: ["-c", file("operator.conf", ours.config)] });
  const logger = createLogger({ service: "test", level: "silent" });
  const open = (creds: string) =>
    openBus({ natsUrl: server.url, natsCredsFile: file("user.creds", creds) }, "test", logger);
  const bus = await open(ours.creds);
  expect(bus.status()).toMatchObject({ connected: true, server: expect.stringMatching(/^\d/) });
  await bus.close();
  expect(await open(theirs.creds).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  await server.close();
}, 60_000);
