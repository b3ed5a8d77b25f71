/** What the statements and payloads are that a device signs or checks. Part of the signed bytes. */
export const GRANT_TYPE = "application/vnd.reeve.grant.v1";
/** A reeve.device.v1.Receipt. */
export const RECEIPT_TYPE = "application/vnd.reeve.receipt.v1";
/** A reeve.device.v1.Manifest. */
export const MANIFEST_TYPE = "application/vnd.reeve.manifest.v1";
