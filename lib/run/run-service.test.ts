import { EventEmitter } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { identityRefused } from "../auth/peer.ts";
import { createTokenFile } from "../auth/token-file.ts";
import type { EventBus } from "../events/bus.ts";
import { faultDetail } from "../fault/fault.ts";
import type { Authority } from "../identity/authority.ts";
import type { Identity } from "../identity/spiffe.ts";
import { device, service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { staticTls, type TlsMaterial } from "../identity/tls-source.ts";
import { createServiceTransport } from "../rpc-client/transport.ts";
import { principalOf } from "../server/context.ts";
import { Echo } from "../server/echo.fixture.ts";
import { type ProcessOptions, type RunningService, runService, type Service, untilSignal } from "./run-service.ts";

const POLICY = service("policy");
const DEVICE = device("dev-0123456789abcdef");

let authority: Authority;
beforeAll(async () => {
  authority = await testAuthority();
});

let folder: string;
let running: RunningService | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-run-"));
});
afterEach(async () => {
  await running?.close();
  running = undefined;
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);

function write({ cert, key, ca }: TlsMaterial): Pick<ProcessOptions, "tlsCertFile" | "tlsKeyFile" | "tlsCaFile"> {
  writeFileSync(path("cert.pem"), cert);
  writeFileSync(path("key.pem"), key);
  chmodSync(path("key.pem"), 0o600);
  writeFileSync(path("ca.pem"), ca);
  return { tlsCertFile: path("cert.pem"), tlsKeyFile: path("key.pem"), tlsCaFile: path("ca.pem") };
}

const echoing: Service = {
  routes: (router) => router.service(Echo, { say: (_request, context) => ({ text: principalOf(context).id }) }),
  services: [Echo],
  ready: () => true,
  close: async () => undefined,
};

async function start(options: Partial<ProcessOptions> = {}, parts: Partial<Service> = {}): Promise<RunningService> {
  running = await runService({
    name: "policy",
    host: "127.0.0.1",
    port: 0,
    tokensFile: path("tokens.json"),
    logLevel: "silent",
    create: async () => ({ ...echoing, ...parts }),
    ...options,
  });
  return running;
}

async function startSecurely(
  options: Partial<ProcessOptions> = {},
  parts: Partial<Service> = {},
): Promise<RunningService> {
  return start({ ...write(await testMaterial(authority, POLICY)), ...options }, parts);
}

/** What a call as a principal comes to: the principal's id, or the reason and the why of its refusal. */
async function callAs(identity: Identity | undefined, token?: string): Promise<unknown> {
  const tls = identity === undefined ? undefined : staticTls(await testMaterial(authority, identity));
  const transport = createServiceTransport({
    baseUrl: running?.server.url ?? "",
    ...(tls === undefined ? { ca: authority.certificate } : { tls }),
    ...(token !== undefined && { token }),
    serverName: POLICY,
  });
  try {
    return (await createClient(Echo, transport).say({})).text;
  } catch (error: unknown) {
    const detail = faultDetail(error);
    return [detail?.reason, detail?.metadata.why];
  } finally {
    transport.close();
  }
}

test("with certificates it listens with TLS, and tokens count for those who show none", async () => {
  const { server } = await startSecurely();
  expect(server.url).toMatch(/^https:/);
  const { token, entry } = createTokenFile(path("tokens.json")).issueToken({ name: "a", roles: [Role.AGENT] });
  await eventually(async () => expect(await callAs(undefined, token)).toBe(entry.id));
  expect(await callAs(undefined)).toEqual([ErrorReason.UNAUTHENTICATED, undefined]);
  expect(await callAs(service("registry"))).toEqual([ErrorReason.ROLE_REQUIRED, undefined]);
});

test("only the services that it accepts may call", async () => {
  await startSecurely({ acceptServices: ["registry"] });
  expect(await callAs(service("registry"))).toEqual([ErrorReason.ROLE_REQUIRED, undefined]); // it is known
  expect(await callAs(POLICY)).toEqual([ErrorReason.IDENTITY_REFUSED, "role"]);
});

test("only the configured trust domain counts", async () => {
  await startSecurely({ trustDomain: "fleet.example" });
  expect(await callAs(service("registry"))).toEqual([ErrorReason.IDENTITY_REFUSED, "foreign"]);
  expect(await callAs({ ...service("registry"), trustDomain: "fleet.example" })).toEqual([
    ErrorReason.ROLE_REQUIRED,
    undefined,
  ]);
});

test("the service is asked about each certificate, and may refuse it", async () => {
  const checkPeer = vi.fn<NonNullable<Service["checkPeer"]>>(async ({ identity }) => {
    if (identity.kind === "device") throw identityRefused("revoked", identity);
  });
  await startSecurely({}, { checkPeer });
  expect(await callAs(DEVICE)).toEqual([ErrorReason.IDENTITY_REFUSED, "revoked"]);
  expect(await callAs(service("registry"))).toEqual([ErrorReason.ROLE_REQUIRED, undefined]);
  expect(checkPeer).toHaveBeenCalledTimes(2);
});

test("the service gets the material of the files, and may listen with its own", async () => {
  const other = await testAuthority();
  const own = staticTls({
    ...(await testMaterial(authority, POLICY)),
    ca: `${authority.certificate}${other.certificate}`,
  });
  const create = vi.fn<ProcessOptions["create"]>(async () => ({ ...echoing, tls: own }));
  await startSecurely({ create });
  expect(create.mock.calls[0]?.[0].tls?.current().cert).toContain("BEGIN CERTIFICATE");
  const tls = staticTls(await testMaterial(other, DEVICE, { trusted: authority }));
  const transport = createServiceTransport({ baseUrl: running?.server.url ?? "", tls, serverName: POLICY });
  const refusal = await createClient(Echo, transport)
    .say({})
    .catch((error: unknown) => faultDetail(error)?.reason);
  expect(refusal).toBe(ErrorReason.ROLE_REQUIRED); // known, and not foreign
  transport.close();
});

test("without certificates it listens on loopback only", async () => {
  const { server } = await start();
  expect(server.url).toMatch(/^http:/);
  await server.close(0);
  await expect(start({ host: "0.0.0.0" })).rejects.toThrow("in cleartext");
});

test("half of the TLS settings is refused by name", async () => {
  const { tlsCaFile: _, ...half } = write(await testMaterial(authority, POLICY));
  await expect(start(half)).rejects.toThrow("REEVE_TLS_CA_FILE");
});

test("metrics are on the main port only where there is no probe port", async () => {
  const metricsAt = (url: string): Promise<number> => fetch(`${url}/metrics`).then(({ status }) => status);
  const { server } = await start();
  expect(await metricsAt(server.url)).toBe(200);
  await running?.close();
  const [probePort = 0] = await freePorts(1);
  const { server: probed } = await start({ probePort });
  expect(await metricsAt(probed.url)).toBe(404);
  expect(await metricsAt(`http://127.0.0.1:${probePort}`)).toBe(200);
  expect((await fetch(`${probed.url}/healthz`)).status).toBe(200);
});

test("the probe port is cleartext, anywhere, and follows the drain to the end", async () => {
  let isClosing = false;
  const held = Promise.withResolvers<void>();
  const close = (): Promise<void> => {
    isClosing = true;
    return held.promise;
  };
  const [port = 0] = await freePorts(1);
  await startSecurely({ probeHost: "0.0.0.0", probePort: port }, { close });
  const health = (): Promise<number> => fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status);
  expect(await health()).toBe(200);
  const closed = running?.close();
  expect(isClosing).toBe(true);
  expect(await health()).toBe(503);
  held.resolve();
  await closed;
  await expect(health()).rejects.toThrow();
});

test("a service that cannot be closed keeps nothing else open, and its owner learns of it", async () => {
  const [port = 0] = await freePorts(1);
  await start({ probePort: port }, { close: async () => Promise.reject(new Error("the database is unavailable")) });
  const failing = running;
  running = undefined;
  const signals = new EventEmitter() as NodeJS.Process;
  const ended = untilSignal(failing ?? echoing, signals);
  signals.emit("SIGTERM");
  await expect(ended).rejects.toThrow("did not close cleanly");
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
});

test("a start that fails leaves nothing open", async () => {
  let bus: EventBus | undefined;
  const create: ProcessOptions["create"] = async (parts) => {
    bus = parts.bus;
    throw new Error("the database is unavailable");
  };
  await expect(start({ create })).rejects.toThrow("the database is unavailable");
  await expect(bus?.subscribe({ subject: "reeve.>", handler: async () => undefined })).rejects.toThrow("closed");
});
