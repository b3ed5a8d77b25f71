import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { JsonSchema } from "../tool/json-schema.ts";

/** SHA-256 in hex of the schema's canonical bytes (RFC 8785): the same for the same schema, however it is written. */
export function schemaDigest(schema: JsonSchema): string {
  return createHash("sha256")
    .update(canonicalize(schema) ?? "")
    .digest("hex");
}
