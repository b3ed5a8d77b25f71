import { resolve } from "node:path";

interface KeyBase {
  /** The environment variable. */
  name: string;
  /** What it means, with its unit: one sentence. */
  doc: string;
  /** It may be left unset; the value is undefined then. */
  optional?: true;
  /** Its place in the configuration file, such as "device.mode". Default: none, it is read from the environment only. */
  at?: string;
  /** The value is never shown, in problems or elsewhere. */
  secret?: true;
}

interface Bounds {
  default?: number;
  min?: number;
  max?: number;
}

/** A text may hold several entries, which stand in a file as a list or a mapping. */
interface Entries {
  /** What stands between the entries of a list. */
  list?: string;
  /** What stands between the entries, each written key=value. */
  map?: string;
  /** The entries, or the values of a mapping, are paths. */
  entries?: "path";
}

/**
 * One key of a configuration; without a default and not optional, it must be set. A duration is in milliseconds and
 * written as "250ms", "30s", "5m", "2h" or "1d"; a bool as "true" or "false"; a path is made absolute.
 */
export type ConfigKey = KeyBase &
  (
    | ({ type: "string" | "url" | "path"; default?: string } & Entries)
    | ({ type: "int" | "duration" } & Bounds)
    | { type: "bool"; default?: boolean }
    | { type: "enum"; values: readonly string[]; default?: string }
  );

/** What a key's text may become. */
export type ConfigValue = string | number | boolean | URL;

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The value of a key; undefined when the text is not one. */
export function parseKey(key: ConfigKey, text: string): ConfigValue | undefined {
  switch (key.type) {
    case "string":
      return text;
    case "int":
      return /^-?\d+$/.test(text) ? within(key, Number(text)) : undefined;
    case "duration":
      return within(key, milliseconds(text));
    case "bool":
      return text === "true" || (text === "false" ? false : undefined);
    case "url":
      return URL.parse(text) ?? undefined;
    case "path":
      return resolve(text);
    case "enum":
      return key.values.includes(text) ? text : undefined;
  }
}

/** What may be written for a key, in words. */
export function expectedOf(key: ConfigKey): string {
  switch (key.type) {
    case "int":
      return `a whole number${bounds(key, String)}`;
    case "duration":
      return `a duration such as 500ms, 30s, 5m, 2h or 1d${bounds(key, durationText)}`;
    case "bool":
      return "true or false";
    case "enum":
      return `one of ${key.values.join(", ")}`;
    default:
      if (key.list !== undefined) return `entries, with "${key.list}" between them`;
      if (key.map !== undefined) return `entries key=value, with "${key.map}" between them`;
      return { string: "text", url: "a URL", path: "a path" }[key.type];
  }
}

/** A key's default as it would be written. */
export function defaultText(key: ConfigKey): string | undefined {
  if (key.type === "duration" && key.default !== undefined) return durationText(key.default);
  return key.default?.toString();
}

function milliseconds(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(amount) * UNITS[unit as keyof typeof UNITS];
}

/** In the largest unit that divides it. */
function durationText(value: number): string {
  const [unit, size] = Object.entries(UNITS).findLast(([, divisor]) => value % divisor === 0 && value > 0) ?? ["ms", 1];
  return `${value / size}${unit}`;
}

function within(
  { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: Bounds,
  value: number,
): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

function bounds({ min, max }: Bounds, show: (value: number) => string): string {
  const limits = [
    min === undefined ? [] : `at least ${show(min)}`,
    max === undefined ? [] : `at most ${show(max)}`,
  ].flat();
  return limits.length > 0 ? `, ${limits.join(" and ")}` : "";
}
