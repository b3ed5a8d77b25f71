import type { EventBus } from "../../../lib/events/bus.ts";
import type { ChangeFeed } from "./change-feed.ts";

/** The events of this package; all are about approvals. */
const SUBJECT = "reeve.approval.v1.>";

/**
 * Wakes the feed when a replica publishes a change of an approval, which is sooner than the next regular look. Nothing
 * depends on it: a bus that is unavailable is only reported. Returns what ends it.
 */
export async function wakeOnEvents(
  bus: EventBus,
  changes: Pick<ChangeFeed, "wake">,
  onError: (error: unknown) => void,
): Promise<() => Promise<void>> {
  try {
    const subscription = await bus.subscribe({ subject: SUBJECT, handler: async () => changes.wake() });
    return () => subscription.close();
  } catch (e: unknown) {
    onError(e);
    return async () => {};
  }
}
