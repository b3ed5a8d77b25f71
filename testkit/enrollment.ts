import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import type { DeviceIdentity } from "../gen/ts/reeve/audit/v1/record_pb.ts";
import { EnrollmentService } from "../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../lib/auth/authenticate.ts";
import { createTokenFile } from "../lib/auth/token-file.ts";
import type { Authority } from "../lib/identity/authority.ts";
import { service, testAuthority, testMaterial } from "../lib/identity/testdata/certificates.ts";
import { staticTls } from "../lib/identity/tls-source.ts";
import { createLogger } from "../lib/log/log.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { createServer } from "../lib/server/server.ts";
import { openDatabase } from "../lib/store/database.ts";
import { createEnrollment } from "../services/registry/enrollment/enrollment.ts";
import type { EnrollmentOptions } from "../services/registry/enrollment/parts.ts";
import { type RegistryTables, registryMigrations } from "../services/registry/tables.ts";

/** A registry's enrollment behind a real TLS port, with an operator's client. */
export async function startPlane(
  options: Partial<EnrollmentOptions> & { serverIs?: string; authority?: Authority } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "reeve-plane-"));
  const authority = options.authority ?? (await testAuthority());
  const material = await testMaterial(authority, service(options.serverIs ?? "registry"));
  const db = await openDatabase<RegistryTables>({ path: join(folder, "registry.db"), migrations: registryMigrations });
  const records: DeviceIdentity[] = [];
  const ended: string[] = [];
  const changed = new Set<string>();
  const logger = createLogger({ service: "registry", level: "silent" });
  let url = "";
  const enrollment = await createEnrollment({
    db,
    fleet: {
      recheck: async (_, id) => void changed.add(id),
      forget: async (_, id) => void changed.add(id),
      free: async () => undefined,
      async announce() {
        for (const id of changed) await enrollment.mayAttach(id).catch(() => void ended.push(id));
        changed.clear();
      },
      pinned: async () => undefined,
    },
    tls: staticTls(material),
    trustDomain: "reeve",
    sealingKeyFile: join(folder, "sealing.key"),
    urls: () => [url],
    recordIdentity: async (change) => BigInt(records.push(change)),
    grantKeys: async () => ({ version: 5n, keys: [new Uint8Array(32).fill(7)] }),
    logger,
    ...options,
  });
  const tokens = createTokenFile(join(folder, "tokens.json"));
  const { token } = tokens.issueToken({ name: "ann", roles: [Role.OPERATOR] });
  const server = await createServer({
    routes: enrollment.routes,
    services: enrollment.services,
    authenticate: firstThatKnows(
      authenticateByCertificate({ trustDomain: "reeve", check: enrollment.checkPeer }),
      tokens.authenticate,
    ),
    logger,
    ...(enrollment.tls && { tls: enrollment.tls }),
  });
  url = server.url;
  const transport = createServiceTransport({ baseUrl: url, token, ca: authority.certificate });
  return {
    url,
    authority,
    enrollment,
    records,
    /** The devices whose streams were ended. */
    ended,
    /** The operator's bearer token. */
    token,
    operator: createClient(EnrollmentService, transport),
    async close() {
      transport.close();
      await server.close(0);
      await enrollment.close();
      await db.destroy();
      rmSync(folder, { recursive: true });
    },
  };
}
