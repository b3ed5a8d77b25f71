import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Registry as MetricsRegistry } from "prom-client";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { KeyService } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  PolicyService as PolicyRpcs,
} from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import type { EventBus } from "../../lib/events/bus.ts";
import { measureOutbox } from "../../lib/events/outbox-metric.ts";
import { createRandomHex } from "../../lib/ids/random-hex.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import type { Logger } from "../../lib/log/log.ts";
import type { VerifyKey } from "../../lib/sign/keys.ts";
import { lockFolder } from "../../lib/store/folder-lock.ts";
import type { SharedDatabase } from "../../lib/store/group-commit.ts";
import { measureCount } from "../../lib/store/measured-count.ts";
import { openComponents } from "./components.ts";
import type { PolicyConfig } from "./config.ts";
import { openStream, policyRoutes } from "./routes.ts";
import { openPolicyState } from "./storage/state-dir.ts";
import { openStorage } from "./storage/storage.ts";
import type { PolicyDatabase, PolicyTables } from "./storage/tables.ts";

export interface PolicyServiceOptions {
  config: PolicyConfig;
  /** The database, where it is open already, with policy's tables; it stays open. Default: as the configuration says. */
  database?: SharedDatabase<PolicyTables>;
  logger: Logger;
  /** Where events go. Default: they stay in the outbox. */
  bus?: EventBus;
  /** Where policy's own metrics go. Default nowhere. */
  metrics?: MetricsRegistry;
  /** Milliseconds since 1970. Default: the machine's clock. */
  now?: () => number;
  /** So many random bytes, in hex. Default: the machine's. */
  randomHex?: (bytes: number) => string;
}

/** What is allowed, and the record of what happened. */
export interface PolicyService {
  /** Registers PolicyService, ApprovalService, AuditService and KeyService. */
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** The stream for a caller in the same process, by its principal's id. */
  link(actor: string): StreamFactory<ExchangeRequest, ExchangeResponse>;
  ready(): boolean;
  /** Notes the address, for the message to a second one on the same folder. */
  onListening(url: string): void;
  /** Ends streams and watches, signs the last checkpoint and closes the database. Safe to repeat. */
  close(): Promise<void>;
  /** Verifies the grants that are signed now. */
  readonly grantKey: VerifyKey;
  /** What devices pin: the keys that are trusted for grants now, the one that signs first. */
  readonly grantKeys: readonly VerifyKey[];
  /** Verifies checkpoints, in the form of C2SP signed notes: every key that the log has had, one a line. */
  readonly checkpointKey: string;
  /** The audit log's name. */
  origin: string;
}

async function countPending(db: PolicyDatabase): Promise<number> {
  const row = await db
    .selectFrom("approvals")
    .select((one) => one.fn.countAll<number>().as("count"))
    .where("state", "=", ApprovalState.PENDING)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/**
 * Opens policy on its state folder, and on the database that others may share. Rejects with FolderInUse where the database
 * is in that folder and another process has it; where the policy file is refused,
 * where the audit log does not agree with its newest checkpoint (TAMPERED), where a key file can be read by others, and
 * where the keys in the database were sealed with another sealing key.
 */
export async function createPolicyService(options: PolicyServiceOptions): Promise<PolicyService> {
  const { config, logger, bus, now = Date.now, randomHex = createRandomHex() } = options;
  const onError = (err: unknown): void => logger.error({ err }, "policy failed");
  await using closing = new AsyncDisposableStack();
  // Replicas order their writes in a shared database; a folder has one writer.
  const lock =
    config.databaseUrl === undefined
      ? lockFolder(config.stateDir, { program: "policy", setting: "REEVE_POLICY_STATE_DIR" })
      : undefined;
  closing.defer(async () => lock?.release());
  const state = await openPolicyState(config);
  const { databaseUrl: url } = config;
  const database = options.database ?? (url === undefined ? { path: state.databaseFile } : { url });
  const storage = await openStorage({ database, replicaId: `rep-${randomHex(6)}`, bus, logger, onError });
  closing.defer(storage.close);
  measureOutbox(options.metrics, storage.outbox.count);
  measureCount(
    options.metrics,
    { name: "reeve_approvals_pending", help: "Approvals that wait for a person, on all replicas" },
    () => countPending(storage.db),
  );
  const components = await openComponents({ config, state, storage, bus, logger, now, randomHex, onError, closing });
  const open = closing.move();
  let closed: Promise<void> | undefined;
  return {
    routes: policyRoutes(components),
    services: [PolicyRpcs, ApprovalService, AuditService, KeyService],
    link: (actor) => openStream(components, actor),
    ready: () => closed === undefined,
    onListening: (url) => lock?.listensAt(url),
    close: () => (closed ??= open.disposeAsync()),
    get grantKey() {
      return components.keys.current().grantKey;
    },
    get grantKeys() {
      return components.keys.current().grantKeys;
    },
    get checkpointKey() {
      return components.keys.current().vkeys;
    },
    origin: components.keys.current().logName,
  };
}
