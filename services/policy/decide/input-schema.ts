import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ToolFacts } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { JsonSchema } from "../../../lib/tool/json-schema.ts";
import type { ToolLookup } from "../rules/example.ts";

/** The largest schema that a request may bring, in bytes. */
const MAX_SCHEMA_BYTES = 64 * 1024;

/** What of a tool says what its input's schema is. */
export type ToolVersion = Pick<ToolFacts, "name" | "schemaDigest" | "inputSchema">;

/**
 * The schema of a tool's input: what the request brings, or that of the built-in tool of this very version. Undefined where
 * neither is there, so that nobody knows which arguments are secrets. Throws INVALID_INPUT for a schema that is not the one
 * that the digest is of.
 */
export function inputSchemaOf(tool: ToolVersion, lookup: ToolLookup): JsonSchema | undefined {
  if (tool.inputSchema.length > 0) return broughtSchema(tool);
  const builtIn = lookup(tool.name);
  return builtIn?.schemaDigest === tool.schemaDigest ? builtIn.inputSchema : undefined;
}

function broughtSchema({ inputSchema, schemaDigest }: ToolVersion): JsonSchema {
  if (inputSchema.length > MAX_SCHEMA_BYTES) throw wrong("max_len", `is over ${MAX_SCHEMA_BYTES} bytes`);
  if (sha256Hex(inputSchema) !== schemaDigest) throw wrong("digest", "is not what tool.schemaDigest is the digest of");
  const schema = parsed(inputSchema);
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return schema as JsonSchema;
  throw wrong("schema", "is no JSON Schema");
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

function wrong(rule: string, what: string): Error {
  const field = "tool.inputSchema";
  return fault(
    ErrorReason.INVALID_INPUT,
    { field, rule },
    { message: `${field} ${what}`, violations: [{ field, message: what }] },
  );
}
