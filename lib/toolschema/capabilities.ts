import { type DescService, getOption, type Registry } from "@bufbuild/protobuf";
import type { CapabilityOptions } from "../../gen/ts/reeve/options/v1/capability_pb.ts";
import { type CapabilitySpec, derivedFrom, type Risk } from "../tool/capability.ts";
import type { ToolSpec } from "../tool/spec.ts";
import { isToolName } from "./names.ts";

const RISKS: Readonly<Record<string, Risk>> = { RISK_LOW: "low", RISK_MEDIUM: "medium", RISK_HIGH: "high" };

/**
 * The capabilities that services declare, sorted by name, and what is wrong with the declarations: each capability is declared
 * once, completely, and needed by a tool; each that a tool needs is declared.
 */
export function describeCapabilities(
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
