import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openNatsPost } from "../../lib/events/nats-post.ts";
import { service, testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { staticTls, type TlsSource } from "../../lib/identity/tls-source.ts";
import { createLogger } from "../../lib/log/log.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { busKeysOf } from "../../services/registry/replicas/bus-key.ts";
import { createSessions } from "../../services/registry/replicas/sessions.ts";
import { type RegistryTables, registryMigrations } from "../../services/registry/tables.ts";
import { BUS_KEY, type ReplicaScene, startReplicaScene } from "./fixture.ts";

let scene: ReplicaScene;
let tls: TlsSource;

beforeAll(async () => {
  scene = await startReplicaScene();
  tls = staticTls(await testMaterial(await testAuthority(), service("registry")));
});
afterAll(() => scene?.close());

test("a replica starts while the others tell it to look all the time", async () => {
  const post = await openNatsPost({ servers: [scene.nats.url] });
  const other = createSessions({
    self: "rep-0123456789ab",
    post,
    keys: busKeysOf(BUS_KEY),
    logger: createLogger({ service: "test", level: "silent" }),
    now: Date.now,
    serve: () => undefined,
    onNudge: () => undefined,
  });
  const nudging = setInterval(other.nudge, 5);
  try {
    for (let start = 0; start < 3; start++) {
      const databaseUrl = await scene.postgres.newDatabase();
      // What it must not do is throw in a timer, which fails this run.
      const one = await scene.replica({ enrollment: { tls }, config: { stateDir: scene.folder, databaseUrl } });
      expect(one.registry.ready()).toBe(true);
      await one.close();
    }
  } finally {
    clearInterval(nudging);
    other.close();
    await post.close();
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
