import { Role } from "../../gen/ts/reeve/common/v1/access_pb.ts";
import type { TokenFile } from "../../lib/auth/token-file.ts";

/** The tokens of a stack's first start. Each is shown once and kept as a hash. */
export interface FirstTokens {
  /** For the person whose machine it is. */
  operator: string;
  /** For a model's loop. */
  agent: string;
}

/** Issues the first tokens where there are none yet; undefined where there are. */
export function issueFirstTokens(tokens: TokenFile): FirstTokens | undefined {
  if (tokens.listTokens().length > 0) return undefined;
  return {
    operator: tokens.issueToken({ name: "owner", roles: [Role.OPERATOR] }).token,
    agent: tokens.issueToken({ name: "agent", roles: [Role.AGENT] }).token,
  };
}

/**
 * The token that this machine's `reeve` calls with: the one of its profile where that is still let in, otherwise a new
 * operator's.
 */
export function machineToken(tokens: TokenFile, kept: string | undefined): { token: string; isNew: boolean } {
  if (kept !== undefined && tokens.authenticate(`Bearer ${kept}`) !== undefined) return { token: kept, isNew: false };
  return { token: tokens.issueToken({ name: "owner", roles: [Role.OPERATOR] }).token, isNew: true };
}
