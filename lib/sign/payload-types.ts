/** What signed statements and payloads are. Part of the signed bytes, so that one can never pass for another. */

/** A reeve.policy.v1.Grant. */
export const GRANT_TYPE = "application/vnd.reeve.grant.v1";
/** A reeve.device.v1.Receipt. */
export const RECEIPT_TYPE = "application/vnd.reeve.receipt.v1";
/** A reeve.device.v1.Manifest. */
export const MANIFEST_TYPE = "application/vnd.reeve.manifest.v1";
