import { createRegistry, type DescFile, type DescService, getOption, type Registry } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import type { CapabilityOptions } from "../../gen/ts/reeve/options/v1/capability_pb.ts";
import { type CapabilitySpec, derivedFrom, type Risk } from "../tool/capability.ts";
import type { ToolSpec } from "../tool/spec.ts";
import { isToolName } from "./names.ts";
import { describeTool, type ToolOptionSet } from "./tool.ts";

/** All tools and capabilities that a set of .proto files defines, sorted by name. */
export interface Catalog {
  capabilities: CapabilitySpec[];
  tools: ToolSpec[];
}

/** A catalog, and what keeps some RPCs out of it: one sentence each, which starts with the RPC's name. */
export interface CatalogResult {
  catalog: Catalog;
  problems: string[];
}

/**
 * The tools that the services of the files define: each RPC with the option `reeve.options.v1.tool`. The options are
 * found through the files' own descriptors, so that this works on files that were loaded at run time.
 *
 * @param allFiles every file that the files need, with source information: descriptions are comments.
 */
export function describeTools(files: Iterable<DescFile>, allFiles: Iterable<DescFile>): CatalogResult {
  const registry = createRegistry(...allFiles);
  const tool = registry.getExtension("reeve.options.v1.tool");
  if (!tool) return { catalog: { capabilities: [], tools: [] }, problems: [] };
  const options: ToolOptionSet = {
    tool,
    fields: {
      secret: registry.getExtension("reeve.options.v1.secret"),
      command: registry.getExtension("reeve.options.v1.command"),
      deadline: registry.getExtension("reeve.options.v1.deadline"),
    },
    validator: createValidator({ registry }),
    comments: "required",
  };
  const services = [...files].flatMap((file) => file.services);
  const found = services.flatMap((service) => toolsOf(service, options));
  const tools = found.flatMap((result) => (result.kind === "tool" ? [result.tool] : []));
  const problems = found.flatMap((result) => (result.kind === "problem" ? result.problems : []));
  tools.sort((a, b) => (a.name < b.name ? -1 : 1));
  const declared = describeCapabilities(services, tools, registry);
  return {
    catalog: { capabilities: declared.capabilities, tools },
    // A tool that has a problem itself is not among those that need a capability.
    problems: [...problems, ...repeatedNames(tools), ...(problems.length > 0 ? [] : declared.problems)],
  };
}

function toolsOf(service: DescService, options: ToolOptionSet): ReturnType<typeof describeTool>[] {
  return service.methods.map((method) => describeTool(method, options));
}

function repeatedNames(tools: readonly ToolSpec[]): string[] {
  return [...Map.groupBy(tools, (tool) => tool.name)]
    .filter(([, group]) => group.length > 1)
    .map(([name, group]) => `${group.map((tool) => tool.method).join(" and ")}: the tool name "${name}" is used twice`);
}

const RISKS: Readonly<Record<string, Risk>> = { RISK_LOW: "low", RISK_MEDIUM: "medium", RISK_HIGH: "high" };

/**
 * The capabilities that services declare, sorted by name, and what is wrong with the declarations: each capability is declared
 * once, completely, and needed by a tool; each that a tool needs is declared.
 */
function describeCapabilities(
  services: readonly DescService[],
  tools: readonly ToolSpec[],
  registry: Registry,
): { capabilities: CapabilitySpec[]; problems: string[] } {
  const option = registry.getExtension("reeve.options.v1.capability");
  const risks = option?.message?.field.risk?.enum?.value;
  const problems: string[] = [];
  const declared = new Map<string, CapabilitySpec>();
  for (const service of option === undefined ? [] : services) {
    for (const stated of getOption(service, option as NonNullable<typeof option>) as CapabilityOptions[]) {
      const { name, title, description } = stated;
      const where = `${service.typeName}: the capability "${name}"`;
      const risk = RISKS[risks?.[stated.risk]?.name ?? ""];
      const derived = derivedFrom(name, tools);
      if (!isToolName(name)) problems.push(`${where} has no proper name`);
      if (title === "" || description === "" || risk === undefined)
        problems.push(`${where} does not state its title, description and risk`);
      if (declared.has(name)) problems.push(`${where} is declared twice`);
      if (derived.tools.length === 0) problems.push(`${where} is needed by no tool`);
      declared.set(name, { name, title, description, risk: risk ?? "high", ...derived });
    }
  }
  for (const tool of tools)
    for (const name of tool.capabilities)
      if (!declared.has(name)) problems.push(`${tool.method}: the capability "${name}" is not declared`);
  return { capabilities: [...declared.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), problems };
}
