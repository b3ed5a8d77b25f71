import { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { CHECKPOINT_TYPE, GRANT_TYPE } from "../../../lib/sign/payload-types.ts";

export type SignedRole = typeof KeyRole.GRANT | typeof KeyRole.CHECKPOINT;

export const SIGNED_ROLES: readonly SignedRole[] = [KeyRole.GRANT, KeyRole.CHECKPOINT];

/** What the keys of a role sign, as their keyrings say it. */
export const STATEMENT_TYPES: Readonly<Record<SignedRole, string>> = {
  [KeyRole.GRANT]: GRANT_TYPE,
  [KeyRole.CHECKPOINT]: CHECKPOINT_TYPE,
};
