import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import { type Approval, ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { createRandom } from "./random.ts";

/** A human who watches held calls and decides about them, at whichever replica of policy chance gives. */
export interface Approver {
  close(): Promise<void>;
}

/** What the human needs. */
export interface ApproverOptions {
  /** The replicas of policy. */
  urls: readonly string[];
  token: string;
  /** The authority to trust, PEM. */
  ca: string;
  seed: number;
  /** What to say about a call; undefined to say nothing. */
  answer(callId: string): "yes" | "no" | undefined;
}

/** Begins to watch. A watch that breaks is begun again at another replica, and a decision is tried until it is taken. */
export function createApprover({ urls, token, ca, seed, answer }: ApproverOptions): Approver {
  const random = createRandom(seed ^ 0x5a5a);
  const closing = new AbortController();
  const { signal } = closing;
  const transports = urls.map((baseUrl) =>
    createServiceTransport({ baseUrl, token, ca, pingIntervalMs: 1000, pingTimeoutMs: 2000, connectTimeoutMs: 5000 }),
  );
  const clients = transports.map((transport) => createClient(ApprovalService, transport));
  const deciding = new Map<string, Promise<void>>();
  const anyOf = (): Client<typeof ApprovalService> => random.pick(clients);

  const say = async ({ id: approvalId, spec }: Approval, says: "yes" | "no"): Promise<void> => {
    while (!signal.aborted) {
      try {
        const limits = { signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]) };
        if (says === "no") await anyOf().deny({ approvalId, channel: "chaos" }, limits);
        else await anyOf().approve({ approvalId, summaryDigest: spec?.summaryDigest ?? "", channel: "chaos" }, limits);
        return;
      } catch (error: unknown) {
        // Also when an answer to an earlier try was lost, or the call was canceled.
        if (reasonOf(error) === ErrorReason.APPROVAL_DECIDED) return;
        await sleep(random.between(50, 400));
      }
    }
  };
  const watch = async (): Promise<void> => {
    for await (const { approval } of anyOf().watchApprovals({}, { signal })) {
      if (approval?.status?.state !== ApprovalState.PENDING || deciding.has(approval.id)) continue;
      const says = answer(approval.spec?.callId ?? "");
      if (says !== undefined) deciding.set(approval.id, say(approval, says));
    }
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await watch().catch(() => undefined);
      await sleep(100);
    }
  };
  const running = run();

  return {
    async close() {
      closing.abort();
      await running;
      await Promise.all(deciding.values());
      for (const transport of transports) transport.close();
    },
  };
}
