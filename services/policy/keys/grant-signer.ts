import { type BatchSigner, createBatchSigner } from "../../../lib/sign/batch.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import type { KeyRing } from "./key-ring.ts";

/** Signs grants with the key that signs now. */
export function createGrantSigner(ring: Pick<KeyRing, "current">): BatchSigner {
  let key = ring.current().grantKey;
  let signer = createBatchSigner({ key, statementType: GRANT_TYPE });
  return {
    sign(statement) {
      const { grantKey } = ring.current();
      if (grantKey !== key) {
        key = grantKey;
        signer = createBatchSigner({ key, statementType: GRANT_TYPE });
      }
      return signer.sign(statement);
    },
  };
}
