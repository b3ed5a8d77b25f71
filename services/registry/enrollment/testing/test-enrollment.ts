import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import type { DeviceIdentity } from "../../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { AuthorityService } from "../../../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { EnrollmentService } from "../../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { Role } from "../../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal, PrincipalKind } from "../../../../lib/auth/principal.ts";
import { service, testAuthority, testMaterial } from "../../../../lib/identity/testdata/certificates.ts";
import { staticTls } from "../../../../lib/identity/tls-source.ts";
import { createLogger } from "../../../../lib/log/log.ts";
import { inMemoryTransport } from "../../../../lib/server/in-memory.fixture.ts";
import { type Database, openDatabase } from "../../../../lib/store/database.ts";
import { type RegistryTables, registryMigrations } from "../../tables.ts";
import { createEnrollment, type Enrollment } from "../enrollment.ts";
import type { EnrollmentOptions } from "../parts.ts";

/** An enrollment with its own database, in front of a fleet and an audit log that only remember what they were asked. */
export interface TestEnrollment {
  enrollment: Enrollment;
  db: Database<RegistryTables>;
  operator: Client<typeof EnrollmentService> & Client<typeof AuthorityService>;
  anybody: Client<typeof EnrollmentService>;
  /** The RPCs as a device calls them. */
  device(id: string): Client<typeof EnrollmentService>;
  /** What the audit log holds, as "change name why". */
  records: DeviceIdentity[];
  /** Lets the audit log answer, or not. */
  policy(isAvailable: boolean): void;
  /** What the fleet was asked, as "recheck dev-…". */
  requests: string[];
  pins: Map<string, { deviceId: string }>;
  /** Moves the clock. */
  clock: { now: number };
  /** Another replica on the same database. */
  another(options?: Partial<EnrollmentOptions>): Promise<TestEnrollment>;
  close(): Promise<void>;
}

/** The keys that sign grants here, of the third version of the keyring. */
export const GRANT_KEYS = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

const authority = await testAuthority();
const material = await testMaterial(authority, service("registry"));
/** The authority of the control plane here. */
export const SERVICE_CA = authority.certificate;

/** Opens an enrollment on a SQLite database in memory, or on the database behind a URL. */
export async function testEnrollment(options: Partial<EnrollmentOptions> = {}, url?: string): Promise<TestEnrollment> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-enrollment-"));
  const place = url === undefined ? { path: join(folder, "registry.db") } : { url };
  const db = await openDatabase<RegistryTables>({ ...place, migrations: registryMigrations });
  const first = await open(folder, db, { now: Date.now() }, options);
  return {
    ...first,
    async close() {
      await first.close();
      await db.destroy();
      await rm(folder, { recursive: true });
    },
  };
}

async function open(
  folder: string,
  db: Database<RegistryTables>,
  clock: { now: number },
  options: Partial<EnrollmentOptions>,
): Promise<TestEnrollment> {
  const records: DeviceIdentity[] = [];
  const requests: string[] = [];
  const pins = new Map<string, { deviceId: string }>();
  let policy = Promise.withResolvers<void>();
  policy.resolve();
  const enrollment = await createEnrollment({
    db,
    fleet: {
      recheck: async (_, id) => void requests.push(`recheck ${id}`),
      forget: async (_, id) => void requests.push(`forget ${id}`),
      free: async (_, name, id) => void requests.push(`free ${name} for ${id}`),
      announce: async () => undefined,
      pinned: async (name) => pins.get(name),
    },
    tls: staticTls(material),
    trustDomain: "reeve",
    sealingKeyFile: join(folder, "sealing.key"),
    urls: () => ["https://127.0.0.1:7400"],
    async recordIdentity(change) {
      await policy.promise;
      const known = records.findIndex(({ changeId }) => changeId === change.changeId);
      return BigInt(known >= 0 ? known : records.push(change) - 1);
    },
    grantKeys: async () => ({ version: 3n, keys: GRANT_KEYS }),
    logger: createLogger({ service: "test", level: "silent" }),
    now: () => clock.now,
    ...options,
  });
  const clientOf = (principal?: Principal) => {
    const transport = inMemoryTransport(enrollment.routes, principal === undefined ? {} : { principal });
    return { ...createClient(EnrollmentService, transport), ...createClient(AuthorityService, transport) };
  };
  const principal = (id: string, kind: PrincipalKind, role: Role): Principal => ({ id, kind, roles: [role], name: id });
  return {
    enrollment,
    db,
    operator: clientOf(principal("ann", "operator", Role.OPERATOR)),
    anybody: clientOf(),
    device: (id) => clientOf(principal(id, "device", Role.DEVICE)),
    records,
    policy(isAvailable) {
      if (isAvailable) return policy.resolve();
      policy = Promise.withResolvers();
    },
    requests,
    pins,
    clock,
    another: (more = {}) => open(folder, db, clock, { ...options, ...more }),
    close: () => enrollment.close(),
  };
}
