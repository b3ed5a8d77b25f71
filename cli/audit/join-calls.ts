import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import type { LogEntry } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import type { Session } from "../session.ts";

/** How many calls a page of the registry's list has. */
const PAGE = 250;

/** How many calls are asked for one by one, where the newest page does not have them. */
const MOST_SINGLE = 100;

/**
 * The calls that records are about, by id, from the registry: the log itself has digests only. Those that it does not know, or
 * does not show to the caller, are left out; so are all of them where the registry cannot be reached.
 */
export async function callsOf(
  { registry }: Pick<Session, "registry">,
  entries: readonly LogEntry[],
): Promise<ReadonlyMap<string, CompleteCall>> {
  const wanted = new Set(entries.flatMap(({ record }) => record?.callId || []));
  const found = new Map<string, CompleteCall>();
  if (wanted.size === 0) return found;
  try {
    for (const call of (await registry.listCalls({ pageSize: PAGE })).calls) {
      if (wanted.delete(call.id)) found.set(call.id, completeCall(call));
    }
  } catch {
    return found;
  }
  const single = [...wanted].slice(0, MOST_SINGLE).map((callId) => registry.getCall({ callId }));
  for (const answer of await Promise.allSettled(single)) {
    if (answer.status === "fulfilled" && answer.value.call)
      found.set(answer.value.call.id, completeCall(answer.value.call));
  }
  return found;
}
