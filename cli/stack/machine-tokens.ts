import type { TokenFile } from "../../lib/auth/token-file.ts";
import { UsageError } from "../errors/usage-error.ts";
import { type KeptTokenName, readKeptToken, readProfile, writeKeptToken } from "../profile.ts";
import {
  CHAT,
  type FirstTokens,
  issueFirstTokens,
  type KeptToken,
  keptOrNew,
  OWNER_CLI,
  operatorsOnly,
  RUNS,
  UNTRUSTED_RUNS,
} from "./first-tokens.ts";

/** The tokens of a machine that starts its control plane. */
export interface MachineTokens {
  /** What this start made, to be shown once. Undefined where it is not the first. */
  issued: FirstTokens | undefined;
  /** An operator's token that the profile of an older version held. It is to be shown once, and kept there no longer. */
  former: string | undefined;
  /** For the profile. */
  profile: string;
  /** True where the profile had none that is let in, although this is not the first start. */
  isNew: boolean;
}

const KEPT: readonly (readonly [KeptTokenName, KeptToken])[] = [
  ["chat", CHAT],
  ["runs", RUNS],
  ["untrusted-runs", UNTRUSTED_RUNS],
];

/**
 * Makes what is missing of the tokens in a data folder: the first ones, the profile's, chat's and those of
 * runs. All but the profile are written; that is for the caller to write.
 */
export async function prepareMachineTokens(tokens: TokenFile, folder: string): Promise<MachineTokens> {
  const kept = (await readProfile(folder))?.token;
  const former = operatorsOnly(tokens, kept);
  const issued = issueFirstTokens(tokens);
  const profile = keptOrNew(tokens, kept, OWNER_CLI);
  for (const [name, kind] of KEPT) {
    await writeKeptToken(folder, name, keptOrNew(tokens, await readKeptToken(folder, name), kind));
  }
  const isNew = issued === undefined && former === undefined && profile !== kept;
  return { issued, former, profile, isNew };
}

/** What runs call with, which the start has made by the time that one does. */
export async function runTokens(folder: string): Promise<{ agent: string; trigger: string }> {
  const [agent, trigger] = await Promise.all([readKeptToken(folder, "runs"), readKeptToken(folder, "untrusted-runs")]);
  if (agent !== undefined && trigger !== undefined) return { agent, trigger };
  throw new UsageError(`${folder} holds no tokens for runs`, ["start `reeve up` again: it makes them"]);
}
