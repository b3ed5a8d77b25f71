import type { TokenFile } from "../../lib/auth/token-file.ts";
import { readChatToken, readProfile, writeChatToken } from "../profile.ts";
import { CHAT, type FirstTokens, issueFirstTokens, keptOrNew, OWNER_CLI, operatorsOnly } from "./first-tokens.ts";

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

/**
 * Makes what is missing of the tokens in a data folder: the first ones, the profile's and chat's. Chat's is written; the
 * profile is for the caller to write.
 */
export async function prepareMachineTokens(tokens: TokenFile, folder: string): Promise<MachineTokens> {
  const kept = (await readProfile(folder))?.token;
  const former = operatorsOnly(tokens, kept);
  const issued = issueFirstTokens(tokens);
  const profile = keptOrNew(tokens, kept, OWNER_CLI);
  await writeChatToken(folder, keptOrNew(tokens, await readChatToken(folder), CHAT));
  const isNew = issued === undefined && former === undefined && profile !== kept;
  return { issued, former, profile, isNew };
}
