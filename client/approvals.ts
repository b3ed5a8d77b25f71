import type { Client } from "@connectrpc/connect";
import { type Approval, ApprovalState } from "../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { ApprovalService } from "../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "./errors.ts";
import { reopened, type WatchOptions } from "./retry.ts";

/** How to watch approvals. */
export interface WatchApprovalsOptions extends WatchOptions {
  /** An approval that was pending is not known any more. */
  onGone?: (approvalId: string) => void;
}

/**
 * Approvals as they change, the pending ones first. Goes on over restarts of the service: what was decided while there was
 * no connection is reported after it. Rejects where the service cannot be reached at the beginning, and with any error that
 * is final.
 */
export function watchApprovals(
  client: Pick<Client<typeof ApprovalService>, "getApproval" | "listApprovals" | "watchApprovals">,
  options: WatchApprovalsOptions = {},
): AsyncGenerator<Approval, never, void> {
  const { signal } = options;
  const call = signal === undefined ? {} : { signal };
  const pending = new Set<string>();
  const noted = (approval: Approval): Approval => {
    if (isPending(approval)) pending.add(approval.id);
    else pending.delete(approval.id);
    return approval;
  };
  const missed = async (): Promise<Approval[]> => {
    await client.listApprovals({ state: ApprovalState.PENDING, pageSize: 1 }, call);
    const decided: Approval[] = [];
    for (const approvalId of pending) {
      const approval = await client.getApproval({ approvalId }, call).then(
        (response) => response.approval,
        (error: unknown) => {
          if (reasonOf(error) !== ErrorReason.NOT_FOUND) throw error;
          pending.delete(approvalId);
          options.onGone?.(approvalId);
          return undefined;
        },
      );
      if (approval !== undefined && !isPending(approval)) decided.push(approval);
    }
    return decided;
  };
  const changes = async function* (first: readonly Approval[]) {
    for (const approval of first) yield noted(approval);
    for await (const { approval } of client.watchApprovals({}, call)) {
      if (approval !== undefined) yield noted(approval);
    }
  };
  return reopened(async () => changes(await missed()), options);
}

/** Whether no human has decided yet. */
export function isPending(approval: Approval): boolean {
  return approval.status?.state === ApprovalState.PENDING;
}
