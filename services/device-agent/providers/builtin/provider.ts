import { create, type DescMethodUnary, type JsonObject, type Message, toJson } from "@bufbuild/protobuf";
import { descriptorCodec, warmRules } from "../../../../lib/tool/descriptor-codec.ts";
import type { ToolSpec } from "../../../../lib/tool/spec.ts";
import { toolMethods } from "../../../../lib/toolschema/built-in.ts";
import { toolByName } from "../../../../lib/toolschema/catalog-file.ts";
import type { Executor } from "../../executor/executor.ts";
import {
  type BuiltInFamily,
  builtInFamilies,
  type FamilyProbe,
  type MissingPart,
  type ToolOptionsByFamily,
} from "../../tools/families.ts";
import { type DeviceTool, deviceTool, type ToolContext } from "../../tools/tool.ts";
import type { ToolProvider, UnavailableTool } from "../provider.ts";

/** The built-in tools that the machine can run. What it lacks is looked for once, when this is called. */
export async function openBuiltInTools(executor: Executor, options: ToolOptionsByFamily = {}): Promise<ToolProvider> {
  const tools = createToolTable(options);
  const { available, unavailable } = await probeTools(tools.values(), executor);
  const known = tools.values().map(({ tool }) => tool.spec);
  const provided = { tools: available, known: [...known], unavailable, announced: [] };
  return { provided: () => provided, onChange: () => () => undefined, [Symbol.dispose]: () => undefined };
}

export interface BuiltInTool {
  tool: DeviceTool;
  /** Looks for what the machine lacks for this tool's family besides programs; the same function for all of it. */
  probe: FamilyProbe;
}

/** All built-in tools by name: every RPC that carries the tool option. */
export function createToolTable(options: ToolOptionsByFamily = {}): ReadonlyMap<string, BuiltInTool> {
  const table = new Map<string, BuiltInTool>();
  for (const family of builtInFamilies(options)) {
    for (const [name, method] of toolMethods([family.service])) {
      table.set(name, { tool: toolOf(family, name, method), probe: family.probe });
    }
  }
  return table;
}

function toolOf(family: BuiltInFamily, name: string, method: DescMethodUnary): DeviceTool {
  const run = family.tools[method.localName];
  const preview = family.previews[method.localName];
  const spec = toolByName(name);
  if (run === undefined) throw new Error(`${method.parent.typeName}/${method.name} has no implementation`);
  if (spec === undefined) throw new Error(`${name} is not in the catalog: run npm run generate`);
  if ((preview !== undefined) !== (spec.hasPreview === true))
    throw new Error(`${name} has a preview, or its option says so, and not both`);
  warmRules(method.input);
  const toOutput = async (input: Message, context: ToolContext): Promise<JsonObject> => {
    const output = create(method.output, await run(input, context));
    // With zeros and empty texts: an exit code of 0 is what a caller looks for.
    return toJson(method.output, output, { alwaysEmitImplicit: true }) as JsonObject;
  };
  const tool = deviceTool(spec, descriptorCodec(method.input), toOutput, preview);
  return family.immediate === true ? { ...tool, immediate: true } : tool;
}

/** What a machine can run. */
interface ToolProbe {
  available: DeviceTool[];
  unavailable: UnavailableTool[];
}

/** Looks for the programs that the tools need. What is missing is reported with its reason. */
export async function probeTools(tools: Iterable<BuiltInTool>, executor: Executor): Promise<ToolProbe> {
  const asked = new Map<FamilyProbe, ReturnType<FamilyProbe>>();
  const askOnce = (probe: FamilyProbe): ReturnType<FamilyProbe> => {
    const answer = asked.get(probe) ?? probe(executor);
    asked.set(probe, answer);
    return answer;
  };
  const result: ToolProbe = { available: [], unavailable: [] };
  for (const { tool, probe } of tools) {
    const missing = missingProgram(tool.spec, executor) ?? (await askOnce(probe));
    if (missing === undefined) result.available.push(tool);
    else result.unavailable.push({ tool: tool.spec.name, ...missing });
  }
  return result;
}

function missingProgram({ anyProgram }: ToolSpec, executor: Executor): MissingPart | undefined {
  if (anyProgram.length === 0 || anyProgram.some((program) => executor.resolve(program) !== undefined))
    return undefined;
  const program = anyProgram.join(", ");
  return {
    program,
    why: anyProgram.length === 1 ? `${program} is not on the PATH` : `none of ${program} is on the PATH`,
  };
}
