import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { DeviceIdentityChange, type KeyChanged, KeyChangeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Key, KeyRole, KeyRoleSchema, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { openLogFile } from "../../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../../lib/audit-verify/verify.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { signCheckpoint } from "../../../lib/sign/checkpoint.ts";
import { openKeyringVersion } from "../../../lib/sign/keyring.ts";
import { createKeyring, type generateSigningKey } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { valueName } from "../facts/facts.ts";
import { openPolicyState } from "../storage/state-dir.ts";
import { runSql } from "../testing/run-sql.ts";
import { openTestLink } from "../testing/test-link.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "../testing/test-policy.ts";
import { startReplica, verifyDatabase } from "../testing/test-replicas.ts";
import { testRequest } from "../testing/test-requests.ts";
import type { KeyRow } from "./key-store.ts";
import { openPrivateKey } from "./private-keys.ts";

const HOUR = 3_600_000;

let server: PostgresServer;
let nowMs = 0;
const now = (): number => nowMs;
const running: TestPolicy[] = [];

beforeAll(async () => {
  server = await startPostgresServer();
});
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(async () => {
  await server.close();
  await removeTestFolders();
});

async function start(options: Parameters<typeof startTestPolicy>[0] = {}): Promise<TestPolicy> {
  nowMs = Date.parse("2026-11-01T12:00:00Z");
  const policy = await startTestPolicy({ now, reloadMs: 20, checkpointDelayMs: 5, ...options });
  running.push(policy);
  return policy;
}

async function startTwo(): Promise<[TestPolicy, TestPolicy]> {
  const first = await start({ databaseUrl: await server.newDatabase() });
  const second = await startReplica(first, { now, reloadMs: 20, checkpointDelayMs: 5 });
  running.push(second);
  return [first, second];
}

async function states(policy: TestPolicy, role: KeyRole): Promise<string[]> {
  const { keys } = await policy.keys.listKeys({ role });
  return keys.map(({ state }) => Object.keys(KeyState).find((name) => KeyState[name as never] === state) ?? "");
}

/** The key that signs a grant now. */
async function signerOf(policy: TestPolicy): Promise<string | undefined> {
  const { decision } = await policy.policy.authorize({ request: testRequest({ tool: "device.ping", timeMs: nowMs }) });
  const permit = decision?.outcome.case === "permit" ? decision.outcome.value : undefined;
  return permit?.grant?.head?.signatures[0]?.keyId;
}

async function keyRecords(policy: TestPolicy): Promise<string[]> {
  const { entries } = await policy.audit.listRecords({ pageSize: 1000 });
  return entries.flatMap(({ record }) =>
    record?.event.case === "keyChanged" ? [keyChangeText(record.actor, record.event.value)] : [],
  );
}

function keyChangeText(actor: string, { role, keyId, change }: KeyChanged): string {
  return `${actor}: ${valueName(KeyRoleSchema, role)} ${keyId} ${valueName(KeyChangeSchema, change)}`;
}

async function verify(policy: TestPolicy, verifierKey: string) {
  if (policy.databaseUrl !== undefined) return verifyDatabase(policy, verifierKey);
  const source = openLogFile(join(policy.stateDir, "policy.db"));
  return verifyLog(source, { verifierKey }).finally(() => source.close());
}

describe.each(["SQLite", "two replicas on PostgreSQL"])("on %s", (where) => {
  const startPair = async (): Promise<[TestPolicy, TestPolicy]> => {
    if (where !== "SQLite") return startTwo();
    const only = await start();
    return [only, only];
  };

  it("a grant key begins to sign in the middle of the overlap, and the old one stays trusted to its end", async () => {
    const [a, b] = await startPair();
    const old = await signerOf(a);
    const { key } = await a.keys.rotateKey({ role: KeyRole.GRANT, overlap: { seconds: 7200n } });
    expect(key?.state).toBe(KeyState.NEXT);
    await eventually(async () => expect(await states(b, KeyRole.GRANT)).toEqual(["NEXT", "ACTIVE"]));
    await eventually(() => expect(b.service.grantKeys.map(({ keyId }) => keyId)).toEqual([old, key?.id]));
    expect(await signerOf(b)).toBe(old);

    nowMs += HOUR;
    for (const policy of [a, b]) await eventually(async () => expect(await signerOf(policy)).toBe(key?.id));
    expect(await states(b, KeyRole.GRANT)).toEqual(["ACTIVE", "RETIRING"]);
    expect(b.service.grantKeys.map(({ keyId }) => keyId)).toEqual([key?.id, old]);

    nowMs += HOUR;
    for (const policy of [a, b]) {
      await eventually(async () => {
        expect(await readFile(join(policy.stateDir, "grant.pub"), "utf8")).toBe(`${key?.publicKey}\n`);
      });
    }
    expect(await states(a, KeyRole.GRANT)).toEqual(["ACTIVE", "RETIRED"]);
    expect(await keyRecords(b)).toEqual([
      `op-1: grant ${key?.id} made`,
      `policy: grant ${key?.id} active`,
      `policy: grant ${old} retired`,
    ]);
  });

  it("a checkpoint key signs beside the old one during the overlap, under the same name", async () => {
    const [a, b] = await startPair();
    const { origin, checkpointKey: oldKey } = a.service;
    await signerOf(a);
    await b.keys.rotateKey({ role: KeyRole.CHECKPOINT, overlap: { seconds: 3600n } });
    const [newKey] = (await a.keys.listKeys({ role: KeyRole.CHECKPOINT })).keys.map((key: Key) => key.publicKey);
    await eventually(() => expect(a.service.checkpointKey).toBe(`${newKey}\n${oldKey}`));
    await signerOf(a);
    await eventually(async () => {
      const { checkpoint, verifierKey } = await b.audit.getCheckpoint({});
      expect(checkpoint?.note.match(/^— /gm)).toHaveLength(2);
      expect(checkpoint?.origin).toBe(origin);
      expect(verifierKey).toBe(`${newKey}\n${oldKey}`);
    });

    nowMs += HOUR;
    await eventually(async () => expect(await states(b, KeyRole.CHECKPOINT)).toEqual(["ACTIVE", "RETIRED"]));
    await signerOf(b);
    await eventually(async () => {
      const { checkpoint } = await a.audit.getCheckpoint({});
      expect(checkpoint?.note.match(/^— /gm)).toHaveLength(1);
    });
    for (const policy of new Set([a, b])) await policy.stop();
    expect(await verify(a, `${newKey}\n${oldKey}`)).toMatchObject({ findings: [] });
    const { findings } = await verify(a, oldKey);
    expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set(["bad_checkpoint"]));
    const kept = await readFile(join(b.stateDir, "checkpoint.vkey"), "utf8");
    expect(kept).toBe(`${newKey}\n${oldKey}\n`);
  });

  it("a device that follows the keyrings from any version comes to trust the newest key, without trusting the service", async () => {
    const [a, b] = await startPair();
    const pinned = b.service.grantKey;
    for (let i = 0; i < 2; i++) {
      await a.keys.rotateKey({ role: KeyRole.GRANT, overlap: { seconds: 7200n } });
      nowMs += 2 * HOUR;
      await eventually(async () => {
        expect(await states(b, KeyRole.GRANT)).toEqual(["ACTIVE", "RETIRED", "RETIRED"].slice(0, i + 2));
      });
    }
    const { keyrings } = await b.keys.getKeyring({ role: KeyRole.GRANT });
    let trusted = createKeyring([pinned]);
    for (const [i, envelope] of keyrings.entries()) {
      const opened = openKeyringVersion(envelope, trusted, GRANT_TYPE);
      if (!opened.ok) throw new Error(`version ${i + 1}: ${opened.kind}`);
      expect(opened.keyring.version).toBe(BigInt(i + 1));
      trusted = createKeyring(opened.keyring.keys);
    }
    expect(keyrings).toHaveLength(7);
    const signer = await signerOf(b);
    expect(trusted.find(signer ?? "")).toBeDefined();
    expect(trusted.find(pinned.keyId)).toBeUndefined();
  });

  it("a stream returns the keyrings at once, and again when there is a newer one", async () => {
    const [a, b] = await startPair();
    const link = openTestLink(b.policy);
    const first = await link.ask({ case: "awaitKeyring", value: { knownVersion: 0n } });
    expect(first.case === "keyrings" && first.value.keyrings).toHaveLength(1);
    const next = link.ask({ case: "awaitKeyring", value: { knownVersion: 1n } });
    // It waits without holding up what is asked after it.
    const other = await link.ask({ case: "authorize", value: testRequest({ tool: "device.ping" }) });
    expect(other.case).toBe("decision");
    await a.keys.rotateKey({ role: KeyRole.GRANT });
    const second = await next;
    expect(second.case === "keyrings" && second.value.keyrings).toHaveLength(2);
    const forgotten = link.send({ case: "awaitKeyring", value: { knownVersion: 2n } });
    expect(await link.end()).not.toContain(forgotten);
  });

  it("a change of a device's identity is on record once, however often it is reported", async () => {
    const [a, b] = await startPair();
    const value = {
      change: DeviceIdentityChange.ENROLLED,
      changeId: "chg-1",
      deviceId: "dev-1",
      name: "laptop",
      actor: "op-1",
    };
    const links = [a, b].map(({ policy }) => openTestLink(policy));
    const answers = await Promise.all(links.map((link) => link.ask({ case: "recordDeviceIdentity", value })));
    expect(answers[0]?.case).toBe("recorded");
    expect(answers[1]).toEqual(answers[0]);
    const [link] = links;
    const other = await link?.ask({ case: "recordDeviceIdentity", value: { ...value, deviceId: "dev-2" } });
    expect(other?.value).toMatchObject({ error: { reason: ErrorReason.INVALID_INPUT, metadata: { rule: "unique" } } });
    const nameless = await link?.ask({ case: "recordDeviceIdentity", value: { ...value, changeId: "" } });
    expect(nameless?.value).toMatchObject({ error: { metadata: { field: "changeId", rule: "required" } } });
    for (const one of links) await one.end();
    const { entries } = await a.audit.listRecords({});
    const records = entries.flatMap(({ record }) => (record?.event.case === "deviceIdentity" ? [record] : []));
    expect(records).toMatchObject([{ actor: "op-1", resource: "devices/dev-1", event: { value } }]);
  });
});

describe("keys", () => {
  it("are the same for replicas that start at the same time on an empty database", async () => {
    const databaseUrl = await server.newDatabase();
    const first = await startTestPolicy();
    running.push(first);
    const sealingKeyFile = join(first.stateDir, "sealing.key");
    const both = await Promise.all([1, 2].map(() => startTestPolicy({ databaseUrl, sealingKeyFile })));
    running.push(...both);
    const [a, b] = both.map(({ service }) => [service.grantKey.keyId, service.checkpointKey, service.origin]);
    expect(a).toEqual(b);
  });

  it("say what to do where a replica has another sealing key", async () => {
    const [a] = await startTwo();
    const other = startTestPolicy({ databaseUrl: a.databaseUrl ?? "" });
    await expect(other).rejects.toThrow("Give every replica the same file in REEVE_SEALING_KEY_FILE");
  });

  it("keep the log's name: another origin is refused", async () => {
    const policy = await start();
    await policy.stop();
    await expect(start({ stateDir: policy.stateDir, origin: "other/log" })).rejects.toThrow("it keeps this name");
  });

  it("are not in the database in the clear", async () => {
    const policy = await start();
    const { privateKey } = policy.service.grantKey as unknown as ReturnType<typeof generateSigningKey>;
    await policy.stop();
    const seed = privateKey.export({ type: "pkcs8", format: "der" }).subarray(-32);
    const database = await readFile(join(policy.stateDir, "policy.db"));
    expect(database.includes(seed)).toBe(false);
    expect(database.includes("PRIVATE KEY")).toBe(false);
  });

  it("are rotated by operators only, and one rotation at a time", async () => {
    const policy = await start();
    await policy.keys.rotateKey({ role: KeyRole.GRANT });
    const again = await policy.keys.rotateKey({ role: KeyRole.GRANT }).catch((e: unknown) => e);
    expect(reasonOf(again)).toBe(ErrorReason.INVALID_INPUT);
    expect(await keyRecords(policy)).toHaveLength(1);
    const unnamed = await policy.keys.rotateKey({}).catch((e: unknown) => e);
    expect(reasonOf(unnamed)).toBe(ErrorReason.INVALID_INPUT);
    const agent = policy.keysAs("agent-1", Role.AGENT);
    expect(reasonOf(await agent.rotateKey({ role: KeyRole.GRANT }).catch((e: unknown) => e))).toBe(
      ErrorReason.ROLE_REQUIRED,
    );
  });

  it("that are retired sign no head that the log trusts any more", async () => {
    const stateDir = await testFolder();
    const policy = await start({ stateDir });
    const [row] = await runSql(policy, `select * from keys where role = ${KeyRole.CHECKPOINT}`);
    const { sealing } = await openPolicyState({ stateDir });
    const stolen = openPrivateKey(sealing, row as KeyRow);
    await policy.keys.rotateKey({ role: KeyRole.CHECKPOINT, overlap: { seconds: 60n } });
    await signerOf(policy);
    nowMs += HOUR;
    await eventually(async () => expect(await states(policy, KeyRole.CHECKPOINT)).toEqual(["ACTIVE", "RETIRED"]));
    await signerOf(policy);
    await policy.stop();
    const verifierKey = policy.service.checkpointKey;
    expect(await verify(policy, verifierKey)).toMatchObject({ findings: [] });

    const last = await startTestPolicy({ stateDir, now });
    const { checkpoint } = await last.audit.getCheckpoint({});
    await last.stop();
    if (checkpoint === undefined) throw new Error("no checkpoint");
    const { origin, root, size } = checkpoint;
    const note = signCheckpoint({ origin, root, size: Number(size) }, stolen);
    await runSql(last, `update checkpoints set note = '${note}' where size = ${size}`);
    const { findings } = await verify(last, verifierKey);
    expect(findings).toEqual([
      {
        kind: "bad_checkpoint",
        message: `the checkpoint at ${size} is signed only by keys that had been retired before it`,
      },
    ]);
  });
});
