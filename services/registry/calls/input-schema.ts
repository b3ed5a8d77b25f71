import { canonicalJson } from "../../../lib/sign/canonical.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";

/** The largest schema that policy takes, in bytes. */
const MAX_SCHEMA_BYTES = 64 * 1024;

const NOTHING = new Uint8Array();

/** By description of a tool: the same is used for all calls of the tool. */
const known = new WeakMap<ToolSpec, Uint8Array>();

/**
 * What policy gets of a tool's input: the canonical JSON of its schema, of which the schema's digest is the SHA-256.
 * Empty for a built-in tool, which policy knows itself, and for a schema that is over 64 KiB in UTF-8, without which policy
 * shows no arguments to the approver.
 */
export function inputSchemaOf(spec: ToolSpec): Uint8Array {
  if (toolByName(spec.name) !== undefined) return NOTHING;
  const bytes = known.get(spec) ?? new TextEncoder().encode(canonicalJson(spec.inputSchema));
  known.set(spec, bytes);
  return bytes.length <= MAX_SCHEMA_BYTES ? bytes : NOTHING;
}
