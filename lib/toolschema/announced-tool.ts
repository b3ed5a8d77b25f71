import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { AnnouncedTools } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { cleanJson, cleanOutput } from "../sanitize/sanitize.ts";
import type { Tool } from "../tool/codec.ts";
import { jsonDepth } from "../tool/json-schema.ts";
import type { ToolSpec } from "../tool/spec.ts";
import { schemaDigest } from "./digest.ts";
import { LIMITS, LimitExceeded } from "./limits.ts";
import { announcedName } from "./names.ts";

export interface AnnouncedTool extends Tool {
  /** As the device describes it, sanitized. Its name and its capabilities begin with the name of their source and ":". */
  spec: ToolSpec;
  /** The RPC that defines it; undefined where a JSON Schema does. */
  method: DescMethodUnary | undefined;
  /** What it was read from. */
  definition: AnnouncedTools;
}

/** The longest that any call may take, in milliseconds. */
const MAX_TIMEOUT_MS = 3_600_000;
/** The longest description, in characters. */
const MAX_DESCRIPTION = 4096;

/** The spec as callers see it: under the name of its source, sanitized, within the limits. Throws LimitExceeded. */
export function announcedSpec(source: string, spec: ToolSpec): ToolSpec {
  const inputSchema = cleanJson(spec.inputSchema).value;
  const outputSchema = cleanJson(spec.outputSchema).value;
  const schemas = [inputSchema, outputSchema];
  if (JSON.stringify(schemas).length > LIMITS.schema_size) throw new LimitExceeded("schema_size");
  if (schemas.some((schema) => jsonDepth(schema) > LIMITS.schema_depth)) throw new LimitExceeded("schema_depth");
  const name = announcedName(source, spec.name);
  return {
    ...spec,
    name,
    // A rule about a built-in capability must not fit a tool that merely claims to have it.
    capabilities: spec.capabilities.map((capability) => announcedName(source, capability)),
    description: cleanText(spec.description) || `Call ${spec.method || name}.`,
    defaultTimeoutMs: Math.min(spec.defaultTimeoutMs, MAX_TIMEOUT_MS),
    anyProgram: [],
    inputSchema,
    outputSchema,
    schemaDigest: schemaDigest(inputSchema),
  };
}

/** A text of a device, sanitized and cut. */
export function cleanText(text: string): string {
  return cleanOutput(text.slice(0, 4 * MAX_DESCRIPTION)).text.slice(0, MAX_DESCRIPTION);
}
