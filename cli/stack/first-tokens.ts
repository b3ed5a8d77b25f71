import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { roleName } from "../../lib/auth/roles.ts";
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

/** A token that this machine keeps in the clear, in a file that only its owner can read. */
export interface KeptToken {
  name: string;
  roles: readonly Role[];
}

/**
 * What this machine's `reeve` calls with: it looks at everything, and calls under an agent's rules. It approves nothing and
 * issues nothing, because every program that runs as the owner can read it.
 */
export const OWNER_CLI: KeptToken = { name: "owner-cli", roles: [Role.AUDITOR, Role.AGENT] };

/** What `reeve chat` calls with: an agent, and nothing else. */
export const CHAT: KeptToken = { name: "chat", roles: [Role.AGENT] };

/** What the runs of the agent service call with: an agent, and nothing else. */
export const RUNS: KeptToken = { name: "runs", roles: [Role.AGENT] };

/** What runs over untrusted content call with: it may call no tool. */
export const UNTRUSTED_RUNS: KeptToken = { name: "untrusted-runs", roles: [Role.TRIGGER] };

/** A token of a kind: the kept one where it is let in and has exactly those roles, otherwise a new one. */
export function keptOrNew(tokens: TokenFile, kept: string | undefined, kind: KeptToken): string {
  const roles = kept === undefined ? undefined : tokens.authenticate(`Bearer ${kept}`)?.roles;
  if (kept !== undefined && roles?.join() === kind.roles.join()) return kept;
  return tokens.issueToken({ name: kind.name, roles: kind.roles }).token;
}

/** A token that is an operator's; undefined for any other. */
export function operatorsOnly(tokens: TokenFile, token: string | undefined): string | undefined {
  if (token === undefined) return undefined;
  const found = tokens.authenticate(`Bearer ${token}`);
  return found?.roles.some((role) => roleName(role) === "operator") ? token : undefined;
}
