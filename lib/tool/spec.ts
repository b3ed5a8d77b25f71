import type { JsonSchema } from "./json-schema.ts";

/** The set of a device's tools that a tool belongs to, as reeve.options.v1.Scope. */
export type ToolScope = "user" | "sudo" | "any";

/** A tool's contract, before any device offers it. The names are those of reeve.tool.v1.Tool. */
export interface ToolSpec {
  /** The name that callers use, such as "fs.read". */
  name: string;
  /** What it does, for a model that sees nothing else. */
  description: string;
  /** The capabilities it needs on the device, all of them, such as ["docker.container.list"]. At least one. */
  capabilities: string[];
  /** The set of tools it belongs to. */
  scope: ToolScope;
  /** The RPC that defines it, such as "reeve.tools.v1.FileSystem/Read". Empty where a JSON Schema does. */
  method: string;
  /** Hints about its behavior, with the meanings of MCP tool annotations. */
  annotations: { readOnly: boolean; destructive: boolean; idempotent: boolean; openWorld: boolean };
  /** The longest a call may take when the caller names no deadline, in milliseconds. */
  defaultTimeoutMs: number;
  /** Programs of which a device must have one to offer the tool. Empty: it needs none. */
  anyProgram: string[];
  /** The device can say what a call's arguments stand for, before it is held. Default false. */
  hasPreview?: true;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema;
  /** SHA-256 in hex of the input schema's canonical bytes. */
  schemaDigest: string;
}
