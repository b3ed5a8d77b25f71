import type { Approval } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";

/** Tells those who wait or watch that an approval is new or settled. Only after commit. */
export interface ApprovalChanges {
  publish(approval: Approval): void;
  /** Hears of every change until it is stopped. The listener must not throw. */
  listen(listener: (approval: Approval) => void): () => void;
}

/** Changes inside one process. */
export function createApprovalChanges(): ApprovalChanges {
  const listeners = new Set<(approval: Approval) => void>();
  return {
    publish(approval) {
      for (const listener of listeners) listener(approval);
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
