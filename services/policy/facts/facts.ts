import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema, timestampDate } from "@bufbuild/protobuf/wkt";
import { type Environment, evaluate } from "@marcbachmann/cel-js";
import { display_only } from "../../../gen/ts/reeve/options/v1/fact_pb.ts";
import {
  type DecisionRequest,
  DecisionRequestSchema,
  type DeviceFacts,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { CallAnalysis } from "../../../lib/command/call.ts";
import { COMMAND, CommandFacts } from "./command-facts.ts";

/**
 * The variables of a rule's expression, by name: one for each field of `reeve.policy.v1.DecisionRequest` that is a fact, and
 * what the analysis of the call's commands says. All but the latter follows from the message's descriptor, so that a new field
 * is a new fact without a line of code.
 */
export type Facts = Readonly<Record<string, unknown>>;

/** The canonical arguments: JSON in a field of bytes, and the only fact whose type is not known before. */
export const ARGUMENTS = { field: "arguments", fact: "args" } as const;

/** The fields of a message that are facts: all but those that its definition keeps from rules. */
export function factFields(message: DescMessage): DescField[] {
  return message.fields.filter((field) => !getOption(field, display_only));
}

/** The name under which rules see a field. */
export function factName(field: DescField): string {
  return field.parent === DecisionRequestSchema && field.name === ARGUMENTS.field ? ARGUMENTS.fact : field.name;
}

export function factsOf(request: DecisionRequest, args: JsonObject, command: CallAnalysis): Facts {
  const facts: Record<string, unknown> = {};
  for (const field of ROOT_FIELDS) facts[field.name] = field.read(request as unknown as Fields);
  facts[ARGUMENTS.fact] = jsonValue(args);
  facts[COMMAND.fact] = new CommandFacts(command);
  return facts;
}

/** The same facts about another device of a fan-out. */
export function factsOn(facts: Facts, device: DeviceFacts, command: CallAnalysis): Facts {
  return {
    ...facts,
    [DecisionRequestSchema.field.device.name]: factsClass(DEVICE)(device),
    [COMMAND.fact]: new CommandFacts(command),
  };
}

/** Declares the facts with their types in an environment of expressions. */
export function registerFacts(environment: Environment): void {
  for (const { name, ctor, fields } of CLASSES.values()) environment.registerType(name, { ctor, fields });
  for (const { name, type } of ROOT_FIELDS) environment.registerVariable(name, type);
  environment.registerVariable(ARGUMENTS.fact, "dyn");
  environment.registerType(COMMAND.type, { ctor: CommandFacts, fields: COMMAND.fields });
  environment.registerVariable(COMMAND.fact, COMMAND.type);
}

/** The names of an enum's values as rules, examples and records write them: SANDBOX_LEVEL_READ_ONLY is "read_only". */
export function valueNames(desc: DescEnum): string[] {
  return desc.values.filter(({ number }) => number !== 0).map(({ number }) => valueName(desc, number));
}

/** The name of one value; "unspecified" for 0 and for one that is newer than this program. */
export function valueName(desc: DescEnum, number: number): string {
  const value = desc.value[number] ?? desc.value[0];
  return value === undefined ? "unspecified" : value.name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase();
}

type Fields = Readonly<Record<string, unknown>>;

/** One fact: its name, its type in the expression language, and how it is read from the message. */
interface Fact {
  name: string;
  type: string;
  read: (message: Fields) => unknown;
}

interface FactsClass {
  name: string;
  ctor: new (message: Fields) => object;
  fields: Record<string, string>;
}

/** The expression language knows the type of a value by its class, so each message has one. */
const CLASSES = new Map<string, FactsClass>();

const DEVICE = DecisionRequestSchema.field.device.message as DescMessage;

function factsClass(desc: DescMessage): (message: unknown) => object {
  const known = CLASSES.get(desc.typeName) ?? declare(desc);
  return (message) => new known.ctor(message as Fields);
}

function declare(desc: DescMessage): FactsClass {
  const facts = factFields(desc).map(factOf);
  const ctor = class {
    constructor(message: Fields) {
      const own = this as Record<string, unknown>;
      for (const { name, read } of facts) own[name] = read(message);
    }
  };
  const fields = Object.fromEntries(facts.map(({ name, type }) => [name, type]));
  const declared = { name: desc.name, ctor, fields };
  CLASSES.set(desc.typeName, declared);
  return declared;
}

function factOf(field: DescField): Fact {
  const { type, convert } = valueType(field);
  const { localName } = field;
  switch (field.fieldKind) {
    case "list":
      return {
        name: field.name,
        type: `list<${type}>`,
        read: (message) => (message[localName] as unknown[]).map(convert),
      };
    case "map":
      return { name: field.name, type: `map<string, ${type}>`, read: (message) => mapOf(message[localName], convert) };
    default:
      return { name: field.name, type, read: (message) => convert(message[localName]) };
  }
}

/** A map of its own: the keys are an owner's, and on a plain object `constructor` would not be what it seems. */
function mapOf(value: unknown, convert: (value: unknown) => unknown): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(value as Fields).map(([key, inner]) => [key, convert(inner)]));
}

interface ValueType {
  type: string;
  convert: (value: unknown) => unknown;
}

function valueType({ name, scalar, enum: values, message }: DescField): ValueType {
  if (values) return { type: "string", convert: (value) => valueName(values, value as number) };
  if (message) return messageType(message);
  const type = SCALARS.get(scalar as ScalarType);
  if (type === undefined) throw new TypeError(`the field ${name} has no type that rules can use`);
  return { type, convert: type === "int" ? (value) => BigInt(value as number | bigint) : (value) => value };
}

const SCALARS: ReadonlyMap<ScalarType, string> = new Map([
  [ScalarType.STRING, "string"],
  [ScalarType.BOOL, "bool"],
  [ScalarType.BYTES, "bytes"],
  [ScalarType.DOUBLE, "double"],
  [ScalarType.INT32, "int"],
  [ScalarType.INT64, "int"],
  [ScalarType.UINT32, "int"],
  [ScalarType.UINT64, "int"],
]);

/** The language's own class of durations, which its package does not export. */
const CelDuration = (evaluate('duration("0s")') as object).constructor as new (
  seconds: bigint,
  nanos: number,
) => object;

function messageType(desc: DescMessage): ValueType {
  if (desc.typeName === TimestampSchema.typeName) {
    return { type: TimestampSchema.typeName, convert: (value) => value && timestampDate(value as Timestamp) };
  }
  if (desc.typeName === DurationSchema.typeName) {
    return { type: DurationSchema.typeName, convert: (value) => durationOf(value as Duration | undefined) };
  }
  const made = factsClass(desc);
  return { type: desc.name, convert: (value) => value && made(value) };
}

/** Absent is zero: no limit is stated. */
function durationOf(value: Duration | undefined): object {
  return new CelDuration(value?.seconds ?? 0n, value?.nanos ?? 0);
}

/**
 * JSON as values of the language. Whole numbers become ints, so that `args.depth + 1` works. Objects become Maps: the keys
 * are the caller's.
 */
function jsonValue(value: JsonValue): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(jsonValue);
  const map = new Map<string, unknown>();
  for (const key of Object.keys(value)) map.set(key, jsonValue(value[key] as JsonValue));
  return map;
}

// Last, since reading a field uses all of the above.
const ROOT_FIELDS: readonly Fact[] = factFields(DecisionRequestSchema)
  .filter((field) => field.name !== ARGUMENTS.field)
  .map(factOf);
