import { createSharedRun } from "../../../lib/async/shared-run.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Membership } from "../cluster/membership.ts";
import { isEnd } from "./lifecycle.ts";
import type { LiveCall } from "./live-call.ts";
import type { Ownership } from "./ownership.ts";
import type { CallStore, PendingOutcome, StoredCall } from "./store.ts";

/** Claims the calls of replicas that are gone. */
export interface Claimer {
  /** Looks at once. Those who ask while it looks share one look that begins after that. */
  look(): Promise<void>;
  /** Calls claimed since the start. */
  readonly claimed: number;
  /** Looks no more. */
  close(): Promise<void>;
}

/** Dependencies of claiming. */
export interface ClaimerOptions {
  ownership: Ownership;
  store: Pick<CallStore, "get">;
  membership: Membership;
  /** Brings in what is known of devices, before calls on them are resumed. */
  catchUp(): Promise<void>;
  /** The call, where this replica runs it. */
  owned(callId: string): LiveCall | undefined;
  /** Resumes a call, unless this replica runs it already. */
  resume(stored: StoredCall): void;
  /** Brings an outcome into the audit log. */
  send(outcome: PendingOutcome): void;
  logger: Logger;
  /** How often to look, in milliseconds; 0: only when asked. */
  everyMs: number;
}

/** Every so many of the looks by itself this replica also looks for what it owns and has lost hold of. */
const OWN_EVERY = 5;

/** Looks for calls without an owner, with jitter, so that replicas do not all look at the same moment. */
export function createClaimer(options: ClaimerOptions): Claimer {
  const { ownership, membership, logger, everyMs } = options;
  const { self } = membership;
  let claimed = 0;
  let turns = 0;
  let isOwnDue = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;

  const goneOwners = async (): Promise<string[]> => {
    const others = (await ownership.owners()).filter((owner) => owner !== self);
    // A replica that has just come is not known yet, and not gone.
    if (others.some((owner) => owner !== "" && !membership.isAlive(owner))) await membership.look();
    return others.filter((owner) => owner === "" || membership.isGone(owner));
  };
  const claimGone = async (): Promise<void> => {
    const gone = await goneOwners();
    if (gone.length === 0) return;
    const { calls, outcomes } = await ownership.claim(gone);
    if (calls.length + outcomes.length === 0) return;
    logger.info(
      { from: gone, calls: calls.length, outcomes: outcomes.length },
      "calls claimed from replicas that are gone",
    );
    await options.catchUp();
    claimed += calls.length;
    for (const stored of calls) options.resume(stored);
    for (const outcome of outcomes) options.send(outcome);
  };
  /** A call that was interrupted, as when the database was unavailable, is resumed; so is the relay of an outcome. */
  const resumeOwn = async (): Promise<void> => {
    for (const callId of await ownership.mine()) {
      if (options.owned(callId) !== undefined) continue;
      const stored = await options.store.get(callId);
      if (stored?.owner === self && !isEnd(stored.call.status.state)) options.resume(stored);
    }
    for (const outcome of await ownership.myOutcomes()) options.send(outcome);
  };
  const lookNow = async (): Promise<void> => {
    if (closed) return;
    await claimGone();
    if (everyMs === 0) return;
    for (const callId of await ownership.wantedCancels()) options.owned(callId)?.canceled.abort();
    if (!isOwnDue) return;
    isOwnDue = false;
    await resumeOwn();
  };
  const looking = createSharedRun(lookNow);
  const plan = (): void => {
    if (closed || everyMs === 0) return;
    timer = setTimeout(
      () => {
        // However often others ask for a look: what this replica has lost hold of is looked for at its own pace.
        isOwnDue ||= ++turns % OWN_EVERY === 0;
        looking
          .run()
          .catch((error: unknown) => logger.warn({ err: error }, "calls without an owner not looked for"))
          .finally(plan);
      },
      everyMs * (0.5 + Math.random()),
    );
  };
  plan();

  return {
    look: looking.run,
    get claimed() {
      return claimed;
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await looking.quiet();
    },
  };
}
