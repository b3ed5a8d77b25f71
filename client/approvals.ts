import { type Client, ConnectError } from "@connectrpc/connect";
import { type Approval, ApprovalState } from "../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { ApprovalService } from "../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "./errors.ts";
import { isFinalCode, pause } from "./retry.ts";

/** How to watch approvals. */
export interface WatchApprovalsOptions {
  /** Aborting it ends the watch, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The connection is lost, with why; undefined where the service closed it. Once for each time. */
  onLost?: (error: unknown) => void;
  /** The connection is back, and what was decided meanwhile comes next. */
  onBack?: () => void;
  /** An approval that was pending is not known any more. */
  onGone?: (approvalId: string) => void;
  /** Whether trying again is useless. Default: where this caller, or this address, is the wrong one. */
  isFinal?: (error: unknown) => boolean;
}

/** The first pause before connecting again and the longest one, in milliseconds; each is twice the one before. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;

/**
 * Approvals as they change, the pending ones first. Goes on over restarts of the service: what was decided while there was
 * no connection is reported after it. Rejects where the service cannot be reached at the beginning, since a caller who has
 * just given an address wants to know that it is wrong, and with any error that is final.
 */
export async function* watchApprovals(
  client: Pick<Client<typeof ApprovalService>, "getApproval" | "listApprovals" | "watchApprovals">,
  options: WatchApprovalsOptions = {},
): AsyncGenerator<Approval, never, void> {
  const { signal, isFinal = isWrongCaller } = options;
  const call = signal === undefined ? {} : { signal };
  const pending = new Set<string>();
  const noted = (approval: Approval): Approval => {
    if (isPending(approval)) pending.add(approval.id);
    else pending.delete(approval.id);
    return approval;
  };
  const connect = async (): Promise<Approval[]> => {
    await client.listApprovals({ state: ApprovalState.PENDING, pageSize: 1 }, call);
    const missed: Approval[] = [];
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
      if (approval !== undefined && !isPending(approval)) missed.push(approval);
    }
    return missed;
  };
  const giveUp = (error: unknown): void => {
    signal?.throwIfAborted();
    if (isFinal(error)) throw error;
  };

  await connect();
  for (;;) {
    let lost: unknown;
    try {
      for await (const { approval } of client.watchApprovals({}, call)) {
        if (approval !== undefined) yield noted(approval);
      }
    } catch (error: unknown) {
      giveUp(error);
      lost = error;
    }
    options.onLost?.(lost);
    let missed: Approval[] | undefined;
    for (let failures = 0; missed === undefined; failures++) {
      await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random() / 2), signal);
      signal?.throwIfAborted();
      missed = await connect().catch((error: unknown) => {
        giveUp(error);
        return undefined;
      });
    }
    options.onBack?.();
    for (const approval of missed) yield noted(approval);
  }
}

/** Whether no human has decided yet. */
export function isPending(approval: Approval): boolean {
  return approval.status?.state === ApprovalState.PENDING;
}

function isWrongCaller(error: unknown): boolean {
  return !(error instanceof ConnectError) || isFinalCode(error.code);
}
