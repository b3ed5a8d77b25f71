import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { ApprovalService } from "../../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { KeyService } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { PolicyService as PolicyRpcs } from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { EventBus } from "../../../lib/events/bus.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { inMemoryTransport } from "../../../lib/server/in-memory.fixture.ts";
import type { PolicyConfig } from "../config.ts";
import { createPolicyService, type PolicyService } from "../service.ts";

/** A policy service on a folder of its own, and clients that go through the whole gate. */
export interface TestPolicy {
  service: PolicyService;
  stateDir: string;
  /** The PostgreSQL database; undefined on SQLite. */
  databaseUrl: string | undefined;
  /** As the registry. */
  policy: Client<typeof PolicyRpcs>;
  /** As an operator. */
  approvals: Client<typeof ApprovalService>;
  audit: Client<typeof AuditService>;
  keys: Client<typeof KeyService>;
  /** Approvals as another principal. */
  approvalsAs(id: string, role: Role): Client<typeof ApprovalService>;
  /** Keys as another principal. */
  keysAs(id: string, role: Role): Client<typeof KeyService>;
  /** Closes the service; the folder stays until the test is over. */
  stop(): Promise<void>;
}

/** The registry, as policy sees it. */
export const REGISTRY: Principal = { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" };

/** The operator that test clients are. */
export const OPERATOR: Principal = { id: "op-1", kind: "operator", roles: [Role.OPERATOR], name: "operator" };

let newDatabase: (() => Promise<string>) | undefined;
const databases = new Map<string, string>();

/** From now on each new state folder goes with a PostgreSQL database of its own. */
export function usePostgres(makeDatabase: () => Promise<string>): void {
  newDatabase = makeDatabase;
}

async function databaseOf(stateDir: string): Promise<string | undefined> {
  const url = databases.get(stateDir) ?? (await newDatabase?.());
  if (url !== undefined) databases.set(stateDir, url);
  return url;
}

/** Starts a policy service. The state folder of an earlier one continues it. */
export async function startTestPolicy(
  options: Partial<PolicyConfig> & { now?: () => number; bus?: EventBus } = {},
): Promise<TestPolicy> {
  const { now, bus, ...config } = options;
  const stateDir = config.stateDir ?? (await testFolder());
  const databaseUrl = config.databaseUrl ?? (await databaseOf(stateDir));
  const service = await createPolicyService({
    config: { reloadMs: 0, ...config, stateDir, ...(databaseUrl !== undefined && { databaseUrl }) },
    logger: createLogger({ service: "policy", level: "silent" }),
    ...(now && { now }),
    ...(bus && { bus }),
  });
  const as = (principal: Principal) => inMemoryTransport(service.routes, { principal, ready: service.ready });
  const operator = as(OPERATOR);
  return {
    service,
    stateDir,
    databaseUrl,
    policy: createClient(PolicyRpcs, as(REGISTRY)),
    approvals: createClient(ApprovalService, operator),
    audit: createClient(AuditService, operator),
    keys: createClient(KeyService, operator),
    approvalsAs: (id, role) => createClient(ApprovalService, as(principal(id, role))),
    keysAs: (id, role) => createClient(KeyService, as(principal(id, role))),
    stop: () => service.close(),
  };
}

function principal(id: string, role: Role): Principal {
  return { id, kind: role === Role.AGENT ? "agent" : "operator", roles: [role], name: id };
}

const folders: string[] = [];

/** A new folder, removed by `removeTestFolders`. */
export async function testFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-policy-"));
  folders.push(folder);
  return folder;
}

/** Removes the folders of the tests so far. */
export async function removeTestFolders(): Promise<void> {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
}
