/** What signed statements and payloads are. Part of the signed bytes, so that one can never pass for another. */

/** A reeve.policy.v1.Grant. */
export const GRANT_TYPE = "application/vnd.reeve.grant.v1";
/** A reeve.device.v1.Receipt. */
export const RECEIPT_TYPE = "application/vnd.reeve.receipt.v1";
/** A reeve.device.v1.Manifest. */
export const MANIFEST_TYPE = "application/vnd.reeve.manifest.v1";
/** A reeve.common.v1.Keyring. */
export const KEYRING_TYPE = "application/vnd.reeve.keyring.v1";
/** The head of an audit log: a C2SP checkpoint, which is signed as a note. Stands in keyrings only. */
export const CHECKPOINT_TYPE = "application/vnd.reeve.checkpoint.v1";
/** A reeve.device.v1.OwnerManifest, as YAML text. */
export const OWNER_MANIFEST_TYPE = "application/vnd.reeve.owner-manifest.v1+yaml";
