import type { JsonValue } from "@bufbuild/protobuf";
import type { Facts } from "./facts.ts";

/** A principal, as rules see it. */
export class Principal {
  readonly id: string;
  readonly roles: readonly string[];

  constructor(facts: Facts["principal"]) {
    this.id = facts.id;
    this.roles = facts.roles;
  }
}

/** A device, as rules see it. */
export class Device {
  readonly id: string;
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly mode: string;
  readonly sandbox: string;
  readonly roots: readonly string[];

  constructor(facts: Facts["device"]) {
    this.id = facts.id;
    this.name = facts.name;
    this.labels = new Map(Object.entries(facts.labels));
    this.mode = facts.mode;
    this.sandbox = facts.sandbox;
    this.roots = facts.roots;
  }
}

/** A tool, as rules see it. */
export class Tool {
  readonly name: string;
  readonly capability: string;
  readonly read_only: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  readonly open_world: boolean;
  readonly requires_approval: boolean;

  constructor(facts: Facts["tool"]) {
    this.name = facts.name;
    this.capability = facts.capability;
    this.read_only = facts.read_only;
    this.destructive = facts.destructive;
    this.idempotent = facts.idempotent;
    this.open_world = facts.open_world;
    this.requires_approval = facts.requires_approval;
  }
}

/** What an expression is evaluated over. */
export interface CelContext {
  principal: Principal;
  device: Device;
  tool: Tool;
  args: unknown;
  source: string;
  time: Date;
}

/** The variables of an expression. Made once for each call and shared by its rules. */
export function celContext(facts: Facts): CelContext {
  return {
    principal: new Principal(facts.principal),
    device: new Device(facts.device),
    tool: new Tool(facts.tool),
    args: celValue(facts.args),
    source: facts.source,
    time: new Date(facts.timeMs),
  };
}

/**
 * JSON as CEL values. Whole numbers become CEL ints, so that `args.depth + 1` works. Objects become Maps: the keys are
 * the caller's, and on a plain object `constructor` or `__proto__` would not be what they seem.
 */
function celValue(value: JsonValue): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(celValue);
  const map = new Map<string, unknown>();
  for (const key of Object.keys(value)) map.set(key, celValue(value[key] as JsonValue));
  return map;
}
