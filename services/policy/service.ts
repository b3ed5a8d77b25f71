import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { ApprovalService } from "../../gen/ts/reeve/policy/v1/approval_service_pb.ts";
import {
  type LinkRequest,
  type LinkResponse,
  PolicyService as PolicyRpcs,
} from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import type { EventBus } from "../../lib/events/bus.ts";
import type { LinkOpener } from "../../lib/link/opener.ts";
import type { Logger } from "../../lib/log/log.ts";
import type { VerifyKey } from "../../lib/sign/keys.ts";
import type { PolicyConfig } from "./config.ts";
import { openParts } from "./parts.ts";
import { createRandomHex } from "./random-hex.ts";
import { openLink, policyRoutes } from "./routes.ts";
import { openPolicyState } from "./state-dir.ts";
import { openStorage } from "./storage.ts";

/** What policy needs. */
export interface PolicyServiceOptions {
  config: PolicyConfig;
  logger: Logger;
  /** Where events go. Default: they stay in the outbox. */
  bus?: EventBus;
  /** Milliseconds since 1970. Default: the machine's clock. */
  now?: () => number;
  /** So many random bytes, in hex. Default: the machine's. */
  randomHex?: (bytes: number) => string;
}

/** What is allowed, and the record of what happened. */
export interface PolicyService {
  /** Registers PolicyService, ApprovalService and AuditService. */
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** The link for an asker in the same process, by its principal's id. */
  link(actor: string): LinkOpener<LinkRequest, LinkResponse>;
  ready(): boolean;
  /** Ends links and watches, signs the last checkpoint and closes the database. Safe to repeat. */
  close(): Promise<void>;
  /** Verifies grants: what devices pin. */
  grantKey: VerifyKey;
  /** Verifies checkpoints, in the form of C2SP signed notes. */
  checkpointKey: string;
  /** The audit log's name. */
  origin: string;
}

/**
 * Opens policy on its state folder. Rejects where the policy file is refused, where the audit log does not agree with its
 * newest checkpoint (TAMPERED), and where a key file can be read by others.
 */
export async function createPolicyService(options: PolicyServiceOptions): Promise<PolicyService> {
  const { config, logger, bus, now = Date.now, randomHex = createRandomHex() } = options;
  const onError = (err: unknown): void => logger.error({ err }, "policy failed");
  const closers: (() => Promise<void>)[] = [];
  const onClose = (closer: () => Promise<void>): void => void closers.push(closer);
  const closeAll = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const state = await openPolicyState(config);
    const storage = await openStorage({ path: state.databaseFile, bus, logger, onError });
    onClose(storage.close);
    const parts = await openParts({ config, state, storage, logger, now, randomHex, onError, onClose });
    onClose(async () => parts.shutdown.abort());
    let closing: Promise<void> | undefined;
    return {
      routes: policyRoutes(parts),
      services: [PolicyRpcs, ApprovalService, AuditService],
      link: (actor) => openLink(parts, actor),
      ready: () => closing === undefined,
      close: () => (closing ??= closeAll()),
      grantKey: state.grantKey,
      checkpointKey: state.vkey,
      origin: state.noteKey.name,
    };
  } catch (e: unknown) {
    await closeAll();
    throw e;
  }
}
