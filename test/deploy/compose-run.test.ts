import { execFile } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { authorityFromPem, issueCertificate } from "../../lib/identity/authority.ts";
import { parsePostgresUrl } from "../../lib/store/postgres-url.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { CLI, runReeveProcess } from "../../testkit/cli.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { startServiceProcess } from "../../testkit/service-process.ts";
import { compose, DEPLOY, mountsOf } from "./compose.ts";
import { natsConfig } from "./nats-config.ts";

// deploy/compose.yaml without containers: its scripts and its services' environments, with each volume as a folder.

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "reeve-compose-"));
  for (const { target } of mountsOf(compose.services.setup ?? {}))
    if (!target.endsWith(".sh")) mkdirSync(join(root, target), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Runs one of the scripts and resolves with what it prints. */
async function run(script: string, env: Record<string, string> = {}): Promise<string> {
  const { PATH = "", ...rest } = nodeEnv();
  const { stdout } = await promisify(execFile)("bash", [join(DEPLOY, script)], {
    env: {
      ...rest,
      ...env,
      HOME: root,
      PATH: `${dirname(process.execPath)}:${PATH}`,
      REEVE_SETUP_ROOT: root,
      REEVE_SETUP_USER: `${process.getuid?.()}:${process.getgid?.()}`,
      REEVE_SETUP_PROGRAM: CLI,
    },
  });
  return stdout;
}

/** A service's environment with its folders below the root, and with these addresses for names of containers. */
function environmentOf(name: string, addresses: Record<string, string>): Record<string, string> {
  const service = compose.services[name] ?? {};
  const folders = mountsOf(service).map(({ source, target }) => {
    const held = mountsOf(compose.services.setup ?? {}).find((mount) => mount.source === source);
    return [target, join(root, held?.target ?? "nowhere")] as const;
  });
  const moved = (value: string): string => {
    const [from, to] = folders.find(([target]) => value.startsWith(`${target}/`) || value === target) ?? ["", ""];
    const here = to + value.slice(from.length);
    return Object.entries(addresses).reduce((text, [host, address]) => text.replaceAll(host, address), here);
  };
  return Object.fromEntries(Object.entries(service.environment ?? {}).map(([key, value]) => [key, moved(value)]));
}

const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

const everyFile = (): string[] =>
  ["owner", "certs", "tokens", "agent"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );

test("setup makes what the services need, for nobody else's eyes, and shows the tokens", async () => {
  const shown = await run("compose-setup.sh");
  expect(shown.match(/rv_[0-9a-f]{12}_\S{43}/g)).toHaveLength(2);
  for (const service of ["registry", "policy", "nats"]) {
    const certificate = new X509Certificate(read("certs", service, "tls.crt"));
    expect(certificate.verify(new X509Certificate(read("certs", "ca.crt")).publicKey)).toBe(true);
    expect(certificate.subjectAltName).toContain(`spiffe://reeve/service/${service}`);
    expect(certificate.checkHost(service)).toBe(service);
  }
  expect(new X509Certificate(read("agent", "tls.crt")).subjectAltName).toContain("spiffe://reeve/service/agent");
  for (const folder of ["certs", "agent"]) expect(Buffer.from(read(folder, "sealing.key"), "base64")).toHaveLength(32);
  expect(read("certs", "sealing.key")).not.toBe(read("agent", "sealing.key"));
  const entries = createTokenFile(join(root, "tokens", "tokens.json"));
  for (const [file, kind] of [
    ["token", "agent"],
    ["trigger-token", "trigger"],
  ] as const)
    expect(entries.authenticate(`Bearer ${read("agent", file).trim()}`)?.kind).toBe(kind);
  expect(everyFile().filter((path) => (statSync(path).mode & 0o007) !== 0 && path.endsWith(".crt") === false)).toEqual(
    [],
  );
});

test("setup keeps existing files, and makes only a certificate anew that ends soon", async () => {
  const before = new Map(everyFile().map((path) => [path, readFileSync(path, "utf8")]));
  expect(await run("compose-setup.sh")).toBe("");
  expect(new Map(everyFile().map((path) => [path, readFileSync(path, "utf8")]))).toEqual(before);

  const authority = authorityFromPem(read("owner", "ca", "ca.crt"), read("owner", "ca", "ca.key"));
  const old = await issueCertificate(authority, generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey, {
    identity: { kind: "service", name: "nats", trustDomain: "reeve" },
    ttlMs: 29 * 86_400_000,
    now: Date.now(),
  });
  writeFileSync(join(root, "certs", "nats", "tls.crt"), old);
  expect(await run("compose-setup.sh")).toContain("the certificate of nats is made anew");
  const renewed = new X509Certificate(read("certs", "nats", "tls.crt"));
  expect(Date.parse(renewed.validTo) - Date.now()).toBeGreaterThan(300 * 86_400_000);
  const changed = everyFile().filter((path) => before.get(path) !== readFileSync(path, "utf8"));
  expect(changed.map((path) => path.slice(root.length)).sort()).toEqual(["/certs/nats/tls.crt", "/certs/nats/tls.key"]);
});

test("what compose.yaml says makes a control plane, whose device joins and can be called", async () => {
  await using parts = new AsyncDisposableStack();
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const database = await postgres.newDatabase();
  writeFileSync(join(root, "nats.conf"), natsConfig("nats/compose.conf", { "/certs": join(root, "certs") }));
  const nats = parts.adopt(await startNatsServer({ args: ["-c", join(root, "nats.conf")] }), (one) => one.close());
  const [policyPort = 0, registryPort = 0, agentPort = 0, ...probePorts] = await freePorts(6);
  const addresses = {
    "//nats:4222": `//127.0.0.1:${nats.port}`,
    "//policy:7401": `//127.0.0.1:${policyPort}`,
    "//registry:7400": `//127.0.0.1:${registryPort}`,
    "//agent:7403": `//127.0.0.1:${agentPort}`,
  };
  const start = async (name: string, command: string, env: Record<string, string>, port = 0) =>
    parts.adopt(await startServiceProcess(command, port, { ...environmentOf(name, addresses), ...env }), (one) =>
      one.stop(),
    );
  // What is only another machine's here: the addresses to listen on, and the database.
  const policy = {
    REEVE_POLICY_HOST: "127.0.0.1",
    REEVE_POLICY_PORT: String(policyPort),
    REEVE_PROBE_PORT: String(probePorts[0]),
    REEVE_POLICY_DATABASE_URL: `${database}?schema=policy`,
  };
  const registry = {
    REEVE_REGISTRY_HOST: "127.0.0.1",
    REEVE_REGISTRY_PORT: String(registryPort),
    REEVE_PROBE_PORT: String(probePorts[1]),
    REEVE_REGISTRY_DATABASE_URL: `${database}?schema=registry`,
  };
  await start("policy", "policy", policy, policyPort);
  await start("registry", "registry", registry, registryPort);

  const operator = environmentOf("join", addresses);
  await run("compose-join.sh", operator);
  const token = read("volumes", "join", "token");
  expect(token).toMatch(/^rvj1\.\S+\n$/);
  await run("compose-join.sh", operator);
  expect(read("volumes", "join", "token")).toBe(token);

  const work = join(root, "volumes", "work");
  await start("device", "device", { ...environmentOf("device", addresses), REEVE_DEVICE_WRITE_ROOTS: work });
  const shell = { ...operator, HOME: root, REEVE_TOKEN: read("owner", "operator-token").trim() };
  await eventually(async () =>
    expect((await runReeveProcess(["device", "list"], shell)).stdout).toMatch(/demo.*online/i),
  );
  const written = await runReeveProcess(
    ["call", "demo", "fs.write", "--path", join(work, "a"), "--text", "hello"],
    shell,
  );
  expect(written.stderr + written.stdout).not.toMatch(/denied|refused/i);
  expect(written.code).toBe(0);
  expect(readFileSync(join(work, "a"), "utf8")).toBe("hello");

  const role = join(DEPLOY, "kubernetes/overlays/single-cluster/agent-role.sql");
  const password = "of the agent service's role";
  // Twice, as in a database that has the role.
  for (const _ of [1, 2])
    await promisify(execFile)("psql", ["-v", "ON_ERROR_STOP=1", "-f", role, database], {
      env: { ...process.env, REEVE_AGENT_DATABASE_PASSWORD: password },
    });
  const url = new URL(`${database}?schema=agent`);
  url.username = "reeve_agent";
  url.password = password;
  const own = new Client({ connectionString: parsePostgresUrl(url.href).connectionString });
  await own.connect();
  parts.defer(() => own.end());
  for (const schema of ["registry", "policy"])
    await expect(own.query(`select * from ${schema}.pg_class`)).rejects.toThrow(
      `permission denied for schema ${schema}`,
    );
  const model = parts.adopt(await startScriptedModel({ turns: [{ text: "nothing to do" }] }), (one) => one.close());
  const agent = {
    REEVE_AGENT_HOST: "127.0.0.1",
    REEVE_AGENT_PORT: String(agentPort),
    REEVE_PROBE_PORT: String(probePorts[2]),
    REEVE_AGENT_DATABASE_URL: url.href,
    ANTHROPIC_API_KEY: "",
    ANTHROPIC_API_KEY_FILE: join(root, "agent", "model-key"),
    ANTHROPIC_BASE_URL: model.url,
  };
  writeFileSync(join(root, "agent", "model-key"), "a key\n", { mode: 0o600 });
  await start("agent", "agent", agent, agentPort);
  const done = await runReeveProcess(["run", "start", "say so", "--watch"], shell);
  expect(done.stderr + done.stdout).toContain("nothing to do");
});
