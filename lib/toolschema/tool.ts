import { type DescExtension, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { durationMs, MethodOptions_IdempotencyLevel as IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Validator } from "@bufbuild/protovalidate";
import type { ToolOptions } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import type { ToolScope, ToolSpec } from "../tool/spec.ts";
import { leadingComment } from "./comments.ts";
import { schemaDigest } from "./digest.ts";
import type { FieldOptionSet } from "./fields.ts";
import { LimitExceeded } from "./limits.ts";
import { isToolName, jsonNames, withJsonNames } from "./names.ts";
import { reachableMessages } from "./reach.ts";
import { messageSchema } from "./schema.ts";

/** The longest a call may take where the RPC states nothing, in milliseconds: what options.proto promises. */
export const DEFAULT_TIMEOUT_MS = 60_000;

const SCOPES: Readonly<Record<string, ToolScope>> = {
  SCOPE_USER: "user",
  SCOPE_SUDO: "sudo",
  SCOPE_ANY: "any",
};

/** What describing a tool needs, found once for all tools. */
export interface ToolOptionSet {
  /** The option reeve.options.v1.tool. */
  tool: DescExtension;
  /** The options that mark fields. */
  fields: FieldOptionSet;
  /** Knows the files' rules. */
  validator: Validator;
  /** Whether an RPC or a field without a comment is a problem. Descriptors from server reflection have none. */
  comments: "required" | "optional";
  /** Is notified of each text that becomes part of a schema; see `messageSchema`. */
  emit?: ((text: string) => void) | undefined;
}

/** What an RPC is. */
export type ToolResult = { kind: "tool"; tool: ToolSpec } | { kind: "problem"; problems: string[] } | { kind: "none" };

/** The tool that an RPC defines: none where it lacks the option, and problems where the definition is not whole. */
export function describeTool(method: DescMethod, options: ToolOptionSet): ToolResult {
  if (!hasOption(method, options.tool)) return { kind: "none" };
  const stated = getOption(method, options.tool) as ToolOptions;
  const scope = scopeOf(stated, options.tool);
  const problems = optionProblems(method, stated);
  if (options.comments === "required") problems.push(...commentProblems(method));
  if (!scope) problems.push("the scope is not stated or not known");
  if (!scope || problems.length > 0) return rejected(method, problems);
  try {
    return { kind: "tool", tool: wholeTool(method, stated, scope, options) };
  } catch (error: unknown) {
    if (error instanceof LimitExceeded) throw error;
    return rejected(method, [error instanceof Error ? error.message : String(error)]);
  }
}

function rejected(method: DescMethod, problems: readonly string[]): ToolResult {
  return { kind: "problem", problems: problems.map((problem) => `${methodName(method)}: ${problem}`) };
}

function wholeTool(method: DescMethod, stated: ToolOptions, scope: ToolScope, options: ToolOptionSet): ToolSpec {
  const names = jsonNames([...reachableMessages(method.output).keys(), ...reachableMessages(method.input).keys()]);
  const shared = { names, validator: options.validator, options: options.fields, emit: options.emit };
  const inputSchema = messageSchema(method.input, { ...shared, direction: "input" });
  return {
    name: stated.name,
    description: withJsonNames(leadingComment(method) ?? "", names),
    capabilities: [...stated.capabilities],
    scope,
    method: methodName(method),
    annotations: {
      readOnly: isReadOnly(method),
      destructive: stated.destructive,
      idempotent: isReadOnly(method) || method.idempotency === IdempotencyLevel.IDEMPOTENT,
      openWorld: stated.openWorld,
    },
    defaultTimeoutMs: stated.defaultTimeout === undefined ? DEFAULT_TIMEOUT_MS : durationMs(stated.defaultTimeout),
    anyProgram: stated.anyProgram,
    ...(stated.preview && { hasPreview: true }),
    inputSchema,
    outputSchema: messageSchema(method.output, { ...shared, direction: "output" }),
    schemaDigest: schemaDigest(inputSchema),
  };
}

function optionProblems(method: DescMethod, stated: ToolOptions): string[] {
  const problems: string[] = [];
  if (!isToolName(stated.name)) problems.push(`"${stated.name}" is no tool name`);
  if (stated.capabilities.length === 0) problems.push("no capability is stated");
  if (method.methodKind !== "unary") problems.push("a tool takes one request and gives one response, not a stream");
  if (stated.destructive && isReadOnly(method)) problems.push("a tool without side effects cannot be destructive");
  return problems;
}

function commentProblems(method: DescMethod): string[] {
  const problems = leadingComment(method) ? [] : ["the RPC has no comment"];
  const messages = new Set([...reachableMessages(method.input).keys(), ...reachableMessages(method.output).keys()]);
  for (const field of [...messages].flatMap((message) => message.fields)) {
    if (!leadingComment(field)) problems.push(`${field.parent.typeName}.${field.name} has no comment`);
  }
  return problems;
}

function scopeOf(stated: ToolOptions, tool: DescExtension): ToolScope | undefined {
  const value = tool.message?.field.scope?.enum?.value[stated.scope];
  return value && SCOPES[value.name];
}

function isReadOnly(method: DescMethod): boolean {
  return method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** An RPC's name with its service's: "reeve.tools.v1.FileSystem/Read". */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}
