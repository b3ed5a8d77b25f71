import { createHash } from "node:crypto";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "./principal.ts";

/** The most characters of an id. */
const MAX_LENGTH = 64;

/** How an id ends that was made here: one that was scoped, or a time-ordered one. */
const MADE_HERE = /-[0-9a-f]{32}$/;

/** What scoping an id depends on. */
export interface IdScope {
  /** The most characters of the result, more than 33. Default 64. */
  maxLength?: number;
  /** The principal that the id belongs to, where it is stored. */
  ownerOf(id: string): Promise<string | undefined>;
}

/**
 * The id under which is stored what a principal names by an id of its own choice. The same name of two principals gives
 * two ids, so that no caller learns by a collision what another one has, or occupies its ids. Those who see everything
 * use the name as it is. The id of something that the principal has already, which it was given in an answer, stays.
 */
export async function scopedId(chosen: string, principal: Principal, scope: IdScope): Promise<string> {
  if (seesAll(principal)) return chosen;
  if (MADE_HERE.test(chosen) && (await scope.ownerOf(chosen)) === principal.id) return chosen;
  return inScope(chosen, principal.id, scope.maxLength);
}

/** A chosen id in the scope of a principal: its beginning, for people who read logs, and 128 bits of SHA-256. */
export function inScope(chosen: string, principalId: string, maxLength = MAX_LENGTH): string {
  const hash = createHash("sha256").update(JSON.stringify([principalId, chosen]));
  const digest = hash.digest("hex").slice(0, 32);
  return `${chosen.slice(0, maxLength - digest.length - 1)}-${digest}`;
}

/** Whether a principal sees the calls and runs of others: operators and auditors do. */
export function seesAll(principal: Principal): boolean {
  return principal.roles.includes(Role.OPERATOR) || principal.roles.includes(Role.AUDITOR);
}
