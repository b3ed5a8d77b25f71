import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  getOption,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type ToolOptions, tool as toolOption } from "../../../gen/ts/reeve/tool/v1/options_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Executor } from "../executor/executor.ts";
import {
  type BuiltInFamily,
  builtInFamilies,
  type FamilyProbe,
  type MissingPart,
  type ToolOptionsByFamily,
} from "./families.ts";
import type { ToolContext } from "./tool.ts";

/** How long a call may take when neither the caller nor the tool says, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 60_000;

/** One tool: a built-in one, or an RPC of an announced service. */
export interface ToolEntry {
  /** The name that callers use, such as "fs.read". */
  name: string;
  /** The capability it needs, such as "fs.read". */
  capability: string;
  /** What the RPC says about the tool. */
  options: ToolOptions;
  /** The RPC. */
  method: DescMethodUnary;
  /** The RPC's name, such as "reeve.tools.v1.FileSystem/Read". */
  id: string;
  input: DescMessage;
  output: DescMessage;
  /** The longest a call may take, in milliseconds: as its input asks, else as the RPC says, else 60000. */
  timeoutMs(input: Message): number;
  /** Runs one call. The input has been validated. Throws faults. */
  run(input: Message, context: ToolContext): Promise<Message>;
  /** Looks for what the machine lacks for this tool's family besides programs; the same function for all of it. */
  probe: FamilyProbe;
}

/** A tool that this machine cannot run. */
export interface UnavailableTool {
  tool: string;
  /** The program or programs it needs, such as "docker". */
  program: string;
  /** Why, in words for the operator. */
  why: string;
}

/** What a machine can run. */
export interface ToolProbe {
  available: ToolEntry[];
  unavailable: UnavailableTool[];
}

/** All built-in tools by name: every RPC that carries the tool option. */
export function createToolTable(options: ToolOptionsByFamily = {}): ReadonlyMap<string, ToolEntry> {
  const entries = builtInFamilies(options).flatMap((family) =>
    family.service.methods.filter((method) => hasOption(method, toolOption)).map((method) => entryOf(family, method)),
  );
  return new Map(entries.map((entry) => [entry.name, entry]));
}

/** Looks for the programs that the tools need. What is missing is kept with its reason, to be told to who asks for it. */
export async function probeTools(tools: ReadonlyMap<string, ToolEntry>, executor: Executor): Promise<ToolProbe> {
  const entries = [...tools.values()];
  const asked = new Map<FamilyProbe, ReturnType<FamilyProbe>>();
  const askOnce = async (probe: FamilyProbe): Promise<MissingPart | undefined> => {
    const answer = asked.get(probe) ?? probe(executor);
    asked.set(probe, answer);
    return await answer;
  };
  const missing = await Promise.all(
    entries.map(async (entry) => missingProgram(entry.options, executor) ?? (await askOnce(entry.probe))),
  );
  const unavailable = entries.flatMap(({ name }, at): UnavailableTool[] => {
    const part = missing[at];
    return part === undefined ? [] : [{ tool: name, ...part }];
  });
  return { available: entries.filter((_, at) => missing[at] === undefined), unavailable };
}

/** The fault for a call of a tool that this machine cannot run: NOT_AVAILABLE{tool,program}. */
export function notAvailable({ tool, program, why }: UnavailableTool): ConnectError {
  return fault(
    ErrorReason.NOT_AVAILABLE,
    { tool, program },
    { message: `${tool} is not available on this device: ${why}` },
  );
}

function entryOf(family: BuiltInFamily, method: DescMethod): ToolEntry {
  if (!isUnary(method)) throw new Error(`${method.parent.typeName}/${method.name} is a tool and not unary`);
  const options = getOption(method, toolOption);
  const run = family.tools[method.localName];
  if (run === undefined) throw new Error(`${method.parent.typeName}/${method.name} has no implementation`);
  return {
    name: options.name,
    capability: options.capability,
    options,
    method,
    id: `${method.parent.typeName}/${method.name}`,
    input: method.input,
    output: method.output,
    timeoutMs: (input) => timeoutWishOf(input) || options.defaultTimeoutMs || DEFAULT_TIMEOUT_MS,
    run: async (input, context) => create(method.output, await run(input, context)),
    probe: family.probe,
  };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function missingProgram({ anyProgram }: ToolOptions, executor: Executor): MissingPart | undefined {
  if (anyProgram.length === 0 || anyProgram.some((program) => executor.resolve(program) !== undefined))
    return undefined;
  const program = anyProgram.join(", ");
  return {
    program,
    why: anyProgram.length === 1 ? `${program} is not on the PATH` : `none of ${program} is on the PATH`,
  };
}

/** The longest that a caller can let a call take, in milliseconds. */
const MAX_TIMEOUT_MS = 3_600_000;

/**
 * The longest that the caller lets the call take, in milliseconds; 0 where its input does not say. An announced tool may
 * have a field of that name that means something else: what is no such time does not count.
 */
export function timeoutWishOf(input: Message): number {
  const { timeoutMs } = input as { timeoutMs?: unknown };
  if (typeof timeoutMs !== "number" || !Number.isInteger(timeoutMs)) return 0;
  return timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : 0;
}
