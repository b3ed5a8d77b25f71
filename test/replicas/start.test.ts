import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { service, testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { staticTls, type TlsSource } from "../../lib/identity/tls-source.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { type RegistryTables, registryMigrations } from "../../services/registry/tables.ts";
import { type ReplicaScene, startReplicaScene } from "../../testkit/replicas.ts";

let scene: ReplicaScene;
let tls: TlsSource;

beforeAll(async () => {
  scene = await startReplicaScene();
  tls = staticTls(await testMaterial(await testAuthority(), service("registry")));
});
afterAll(() => scene?.close());

test("a replica starts while another one wakes it all the time", async () => {
  const other = await scene.replica();
  const waking = setInterval(() => void other.registry.fleet.recheck("dev-0123456789abcdef"), 5);
  try {
    for (let start = 0; start < 3; start++) {
      // What it must not do is throw in a timer, which fails this run.
      const one = await scene.replica();
      expect(one.registry.ready()).toBe(true);
      await one.close();
    }
  } finally {
    clearInterval(waking);
    await other.close();
  }
});

test("a replica that cannot start has left", async () => {
  const sealingKeyFile = join(scene.folder, "no-key");
  writeFileSync(sealingKeyFile, "no key", { mode: 0o600 });
  await expect(scene.replica({ enrollment: { tls, sealingKeyFile } })).rejects.toThrow();
  const db = await openDatabase<RegistryTables>({ url: scene.databaseUrl, migrations: registryMigrations });
  expect(await db.selectFrom("replicas").select("id").execute()).toEqual([]);
  await db.destroy();
});
