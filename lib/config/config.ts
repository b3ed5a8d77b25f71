import { type ConfigKey, type ConfigValue, defaultText, expectedOf, parseKey } from "./config-key.ts";

/** A configuration's keys, by the names the program uses. */
export type ConfigSpec = Readonly<Record<string, ConfigKey>>;

interface ValueTypes {
  string: string;
  path: string;
  url: URL;
  int: number;
  duration: number;
  bool: boolean;
}

type ValueOf<K> = K extends { values: readonly (infer V)[] }
  ? V
  : K extends { type: infer N extends keyof ValueTypes }
    ? ValueTypes[N]
    : never;

/** The values that a spec describes; durations are in milliseconds. */
export type ConfigOf<S extends ConfigSpec> = {
  readonly [N in keyof S]: S[N] extends { optional: true } ? ValueOf<S[N]> | undefined : ValueOf<S[N]>;
};

/** The variables to read from, such as process.env. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Everything that is wrong with a configuration; each problem begins with its variable's name. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["the configuration is not valid:", ...problems].join("\n  "));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** A setting that this reader needs, though others do without it. */
export function required<const K extends ConfigKey>(key: K): Omit<K, "optional"> {
  const { optional: _, ...rest } = key;
  return rest;
}

/** Reads a configuration. An empty variable counts as unset. Throws one ConfigError for all problems together. */
export function readConfig<const S extends ConfigSpec>(spec: S, env: Environment): ConfigOf<S> {
  const problems: string[] = [];
  const values = Object.entries(spec).map(([field, key]) => {
    const text = env[key.name];
    const value = text ? parseKey(key, text) : defaultOf(key);
    const problem = value === undefined ? problemOf(key, text) : undefined;
    if (problem !== undefined) problems.push(`${key.name} ${problem}`);
    return [field, value];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(values) as ConfigOf<S>;
}

function defaultOf(key: ConfigKey): ConfigValue | undefined {
  return typeof key.default === "string" ? parseKey(key, key.default) : key.default;
}

function problemOf(key: ConfigKey, text: string | undefined): string | undefined {
  if (text) return `must be ${expectedOf(key)}${key.secret ? "" : `, not "${text}"`}`;
  return key.optional ? undefined : `is not set: ${key.doc}`;
}

/** One key, for a person. */
export interface ConfigLine {
  name: string;
  /** Its place in the configuration file. */
  at: string | undefined;
  /** What may be written. */
  expected: string;
  /** As it would be written. */
  default: string | undefined;
  required: boolean;
  secret: boolean;
  doc: string;
}

/** Every key of a configuration, for the documentation and for `reeve doctor`. */
export function describeConfig(spec: ConfigSpec): ConfigLine[] {
  return Object.values(spec).map((key) => ({
    name: key.name,
    at: key.at,
    expected: expectedOf(key),
    default: defaultText(key),
    required: key.default === undefined && !key.optional,
    secret: key.secret ?? false,
    doc: key.doc,
  }));
}
