import { createRegistry, type DescFile, type DescService } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import type { CapabilitySpec } from "../tool/capability.ts";
import type { ToolSpec } from "../tool/spec.ts";
import { describeCapabilities } from "./capabilities.ts";
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
