import { expect, test } from "vitest";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { openDatabase } from "../../../lib/store/database.ts";
import { startPostgresServer } from "../../../testkit/postgres-server.ts";
import type { AdmittedDevice } from "../devices/admission.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createAdmission } from "./admission.ts";
import { labelsText } from "./store.ts";

const NOW_MS = 1_800_000_000_000;
const LABELS = { role: "web", site: "b" };

/** What an enrollment may be; in this order, each combination of two is one device's history. */
const KINDS = [
  { state: State.ENROLLED },
  { state: State.ENROLLED, certificate_expire_ms: NOW_MS },
  { state: State.ENROLLED, certificate_expire_ms: NOW_MS + 1 },
  { state: State.ENROLLED, name: "another" },
  { state: State.ENROLLED, labels: "{}" },
  { state: State.LOCKED, why: "lost" },
  { state: State.LOCKED, cloned: 1 },
  { state: State.REMOVED },
  { state: State.PENDING },
];
const HISTORIES = [
  [],
  ...KINDS.flatMap((one) => [[one], ...KINDS.map((other) => [one, other])]),
  ...KINDS.map((one) => [{ state: State.REMOVED }, one, { state: State.REMOVED }]),
];

test.each(["sqlite", "postgres"])("many devices at once are refused for what each alone is, on %s", async (dialect) => {
  await using parts = new AsyncDisposableStack();
  const server = dialect === "postgres" ? parts.adopt(await startPostgresServer(), (one) => one.close()) : undefined;
  const place = server === undefined ? { path: ":memory:" } : { url: await server.newDatabase() };
  const opened = await openDatabase<RegistryTables>({ ...place, migrations: registryMigrations });
  const db = parts.adopt(opened, (one) => one.destroy());
  const devices: AdmittedDevice[] = [];
  for (const [at, history] of HISTORIES.entries()) {
    const deviceId = `dev-${at}`;
    const shown = { name: `web"${at}`, labels: LABELS, isDialed: false };
    for (const [number, kind] of history.entries()) {
      const row = {
        id: `${deviceId}-${number}`,
        name: shown.name,
        labels: labelsText(LABELS),
        secret_hash: new Uint8Array(),
        auto_confirm: 0,
        replaces: 0,
        created_by: "test",
        create_ms: 0,
        expire_ms: 0,
        device_id: deviceId,
      };
      await db
        .insertInto("enrollments")
        .values({ ...row, ...kind })
        .execute();
    }
    devices.push(
      { deviceId, shown },
      { deviceId, shown: undefined },
      { deviceId, shown: { ...shown, name: "another" } },
      { deviceId, shown: { ...shown, isDialed: true } },
    );
  }
  const hostile = ["\0", "\ud800", '"}{', "\\u0000", "__proto__"].map((name, at) => ({
    deviceId: `dialed-${at}`,
    shown: { name, labels: { [name]: name }, isDialed: true },
  }));
  for (const canEnroll of [true, false]) {
    const admission = createAdmission(db, canEnroll, () => NOW_MS);
    const alone = ({ deviceId, shown }: AdmittedDevice) =>
      admission.mayAttach(deviceId, shown).then(() => undefined, reasonOf);
    const kindsOf = async (some: readonly AdmittedDevice[]) => {
      const refused = await admission.refusals([...hostile, ...some]);
      return some.map(({ deviceId }) => {
        const error = refused.get(deviceId);
        return error && reasonOf(error);
      });
    };
    for (const form of [0, 1, 2, 3]) {
      const some = devices.filter((_, at) => at % 4 === form);
      const expected = await Promise.all(some.map(alone));
      expect(await kindsOf(some)).toEqual(expected);
      expect(new Set(expected).size).toBeGreaterThan(1);
    }
    // The same device twice, as its session and as one that was refused before.
    const both = devices.filter((_, at) => at % 4 === 0 || at % 4 === 2);
    const found = await admission.refusals(both);
    for (const device of both)
      if ((await alone(device)) !== undefined) expect([...found.keys()]).toContain(device.deviceId);
  }
});
