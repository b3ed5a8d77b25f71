/**
 * The most of each thing that a party which is not trusted may announce, by the name that a refusal states. They bound the
 * work that reading an announcement takes; an ordinary service stays below a tenth of each.
 */
export const LIMITS = {
  /** Of one service's descriptors, in bytes. */
  descriptor_bytes: 1024 * 1024,
  /** Of one service's descriptors: .proto files besides those that every party has. */
  files: 200,
  /** Messages and enums. */
  types: 2000,
  /** Fields, oneofs and extensions. */
  fields: 10_000,
  /** Values of all enums. */
  enum_values: 10_000,
  /** Services in the files, announced or not. */
  services: 100,
  /** RPCs of all services. */
  rpcs: 1000,
  /** Places of the source that a comment can stand at. */
  source_locations: 20_000,
  /** How many types may be declared one within another. */
  nesting: 32,
  /** Of the descriptors' parts, of any kind. */
  descriptor_parts: 250_000,
  /** Annotated RPCs of one service. */
  tools: 64,
  /** Fields that one tool's input and output hold, messages within messages included. */
  tool_fields: 2000,
  /** Of one tool: the values of a field's enum, summed over all fields, since each field's schema repeats them. */
  tool_enum_values: 10_000,
  /** Of the options on one tool's fields, oneofs and messages, in bytes: its rules. */
  tool_rule_bytes: 64 * 1024,
  /** Fields on all ways from a tool's messages to those that they hold: a validator walks all of them. */
  tool_links: 100_000,
  /** Of one pattern in a tool's rules, in characters, and the sum of its repetitions' counts: what it costs to match. */
  pattern_size: 1000,
  /** Of one tool's schemas, in characters of JSON. */
  schema_size: 64 * 1024,
  /** Schemas in one tool's JSON Schema, each `$ref` counted as what it stands for, and values of enums. */
  schema_nodes: 5000,
  /** How deep a schema may be nested: a google.protobuf.Struct of it must still be read by clients with a limit of 100. */
  schema_depth: 24,
  /** Services, and other sources of tools, that one device announces. */
  announced_services: 32,
  /** Of what defines the tools of a device, in bytes: a manifest has to fit into one message. */
  announced_bytes: 2 * 1024 * 1024,
  /** Of the schemas of all services of a device, in characters of JSON: so must a list of tools. */
  announced_schema_size: 1024 * 1024,
  /** Of one service's schemas, in characters of JSON, those of tools that are left out in the end included. */
  service_schema_size: 1024 * 1024,
  /** Services of a device that are refused; what it announces after that is not read. */
  announced_refusals: 8,
} as const;

export type LimitName = keyof typeof LIMITS;

/** Something that was announced is over a limit. The message names the limit and is safe to show. */
export class LimitExceeded extends Error {
  readonly limit: LimitName;

  constructor(limit: LimitName) {
    super(`over the limit ${limit} of ${LIMITS[limit]}`);
    this.limit = limit;
  }
}

/** Counts something up to its limit. Throws LimitExceeded at the moment that the sum is above it. */
export interface Meter {
  add(amount: number): void;
  readonly sum: number;
}

/** A meter that stands at 0. */
export function createMeter(limit: LimitName): Meter {
  let sum = 0;
  return {
    add(amount) {
      sum += amount;
      if (sum > LIMITS[limit]) throw new LimitExceeded(limit);
    },
    get sum() {
      return sum;
    },
  };
}

/** A meter for each limit that is counted by, made when it is first used. */
export function createMeters(): (limit: LimitName) => Meter {
  const meters = new Map<LimitName, Meter>();
  return (limit) => {
    const meter = meters.get(limit) ?? createMeter(limit);
    meters.set(limit, meter);
    return meter;
  };
}
