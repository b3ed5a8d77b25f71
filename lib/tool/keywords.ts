import type { JsonObject } from "@bufbuild/protobuf";

/**
 * The keywords that a schema has besides those of JSON Schema. They are part of the schema's digest, so a tool cannot lose one
 * without becoming another version. A secret is marked with `writeOnly`.
 */
export const KEYWORDS = {
  /** The part of a command that the property holds: a `CommandPart`. */
  command: "x-reeve-command",
  /** True where the property is the call's deadline, in milliseconds. */
  deadline: "x-reeve-deadline",
} as const;

/** Which part of a command a property holds, as reeve.options.v1.CommandPart. */
export type CommandPart = "argv" | "foreign_argv" | "shell" | "stdin" | "environment" | "folder";

const PARTS: ReadonlySet<unknown> = new Set<CommandPart>([
  "argv",
  "foreign_argv",
  "shell",
  "stdin",
  "environment",
  "folder",
]);

/** The part of a command that a property with this schema holds. */
export function commandPartOf(schema: JsonObject): CommandPart | undefined {
  const part = schema[KEYWORDS.command];
  return PARTS.has(part) ? (part as CommandPart) : undefined;
}
