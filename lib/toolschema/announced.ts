import { type DescMethod, type DescMethodUnary, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { AnnouncedService, AnnouncedTools } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { command, deadline, secret, tool as toolOption } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { descriptorCodec } from "../tool/descriptor-codec.ts";
import { describeSchemas } from "./announced-schemas.ts";
import { type AnnouncedTool, announcedSpec, cleanText } from "./announced-tool.ts";
import { readDescriptorSet } from "./descriptor-set.ts";
import type { FieldOptionSet } from "./fields.ts";
import { createMeter, LIMITS, LimitExceeded, type Meter } from "./limits.ts";
import { announcedName, isServiceName, isToolName } from "./names.ts";
import { describeTool, methodName } from "./tool.ts";
import { assertToolSize } from "./tool-size.ts";
import { anyField, assertPatterns, foreignRule } from "./unknown-rules.ts";

export interface Announced {
  tools: AnnouncedTool[];
  /** Annotated RPCs that are no tools, by the name that they would have. */
  unavailable: { tool: string; why: string }[];
  /** How much of schemas was built for it, in characters, those of tools that were left out included. */
  built: number;
}

/** The longest name of an RPC with its service, in characters. */
const MAX_NAME = 256;

/**
 * The tools of one source that a device announces. What it says of itself is not trusted: it is held to limits, cannot take
 * the name or the capability of a built-in tool, and its texts are cleaned. Device and registry both use this, so that
 * they agree on a schema's digest. Each step is measured before it is taken, so that what it costs is bounded by LIMITS and
 * not by what was announced. Throws LimitExceeded where the service is too large, and an Error that says what is wrong where
 * there is nothing to offer.
 */
export function describeAnnounced(announcement: AnnouncedTools): Announced {
  const { name, definition } = announcement;
  if (!isServiceName(name)) throw new Error("its name is not of lower case letters, digits and -, at most 32");
  switch (definition.case) {
    case "service":
      return describeService(announcement, definition.value);
    case "schemas":
      return describeSchemas(announcement, definition.value);
    default:
      throw new Error("it defines no tools that this version knows");
  }
}

function describeService(
  definition: AnnouncedTools,
  { service: typeName, descriptorSet }: AnnouncedService,
): Announced {
  const { name } = definition;
  const service = readDescriptorSet(descriptorSet).getService(typeName);
  if (service === undefined) throw new Error("the descriptor set does not define the service");
  const methods = toolMethodsOf(service);
  if (methods.length > LIMITS.tools) throw new LimitExceeded("tools");
  const context: DescribeContext = { validator: createValidator(), built: createMeter("service_schema_size") };
  const announced: Announced = { tools: [], unavailable: [], built: 0 };
  const taken = new Set<string>();
  for (const method of methods) {
    const known = announcedName(name, nameOf(method));
    const described = taken.has(known) ? "the name is used twice" : describeMeasured(definition, method, context);
    taken.add(known);
    if (typeof described === "string") announced.unavailable.push({ tool: known, why: cleanText(described) });
    else announced.tools.push(described);
  }
  return { ...announced, built: context.built.sum };
}

/** The options that an announced service marks its fields with. */
const fields: FieldOptionSet = { secret, command, deadline };

/** What all tools of a service are described with. */
interface DescribeContext {
  validator: Validator;
  /** What was built for the service. */
  built: Meter;
}

/** The RPCs of a service that carry the tool option. */
export function toolMethodsOf(service: DescService): DescMethod[] {
  return service.methods.filter((method) => hasOption(method, toolOption));
}

/** What the option says, or the RPC's own name where it says nothing that can be a name. */
function nameOf(method: DescMethod): string {
  const { name } = getOption(method, toolOption);
  return isToolName(name) ? name : method.name.slice(0, MAX_NAME);
}

/** The tool, or what is wrong with it. Throws LimitExceeded where it takes the whole service over a limit. */
function describeMeasured(
  definition: AnnouncedTools,
  method: DescMethod,
  context: DescribeContext,
): AnnouncedTool | string {
  try {
    return describeMethod(definition, method, context);
  } catch (error: unknown) {
    if (error instanceof LimitExceeded && error.limit !== "service_schema_size") return error.message;
    throw error;
  }
}

function describeMethod(
  definition: AnnouncedTools,
  method: DescMethod,
  context: DescribeContext,
): AnnouncedTool | string {
  if (!isUnary(method)) return "a tool takes one request and gives one response, not a stream";
  if (methodName(method).length > MAX_NAME) return "its name is too long";
  assertToolSize(method);
  const any = anyField([method.input, method.output]);
  if (any !== undefined) return `${any} can hold any message, which cannot be checked`;
  const foreign = foreignRule(method.input);
  if (foreign !== undefined) return `${foreign} has a rule that is not one of protovalidate's own`;
  assertPatterns(method.input);
  const size = createMeter("schema_size");
  const emit = (text: string) => {
    context.built.add(text.length);
    size.add(text.length);
  };
  const { validator } = context;
  const described = describeTool(method, { tool: toolOption, fields, validator, comments: "optional", emit });
  if (described.kind === "none") return "the RPC is not annotated";
  if (described.kind === "problem") return described.problems.join("; ");
  if (!described.tool.capabilities.every(isToolName)) return "a capability has no proper name";
  const spec = announcedSpec(definition.name, described.tool);
  return { spec, codec: descriptorCodec(method.input, validator), method, definition };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}
