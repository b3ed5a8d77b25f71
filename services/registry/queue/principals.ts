import type { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";

/** Whether somebody who asked a while ago may still ask. */
export type Standing =
  /** With these roles now; undefined where nobody keeps them, so that those of then count. */
  | { valid: true; roles: readonly Role[] | undefined }
  /** Why not, safe to show: "expired" or "revoked". */
  | { valid: false; why: "expired" | "revoked" };

/** Tells whether a principal may still ask, by its id. */
export type Standings = (principalId: string) => Standing | Promise<Standing>;

/** Takes everybody's word of then: for a registry that nobody told where its tokens are. */
export const everybodyStands: Standings = () => ({ valid: true, roles: undefined });
