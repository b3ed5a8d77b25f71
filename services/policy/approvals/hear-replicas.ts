import type { EventBus } from "../../../lib/events/bus.ts";
import type { ApprovalChanges } from "./changes.ts";

/** The events of this package; all are about approvals. */
const SUBJECT = "reeve.approval.v1.>";

/**
 * Lets a bus say that a replica has changed an approval, which is sooner than the next regular look. Nothing depends on
 * it: a bus that is away is only told to `onError`. Returns what ends it.
 */
export async function hearReplicas(
  bus: EventBus,
  changes: Pick<ApprovalChanges, "look">,
  onError: (error: unknown) => void,
): Promise<() => Promise<void>> {
  try {
    const subscription = await bus.subscribe({ subject: SUBJECT, handler: async () => changes.look() });
    return () => subscription.close();
  } catch (e: unknown) {
    onError(e);
    return async () => {};
  }
}
