import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { schemaAt } from "../tool/json-schema.ts";
import { type JsonStep, jsonLines } from "./json-lines.ts";
import type { PluginProblem } from "./problem.ts";

/** A value of a JSON document, or the absence of one, with where it stands. */
export interface JsonPlace {
  value: JsonValue | undefined;
  path: readonly JsonStep[];
}

/** Reads a JSON document strictly: whatever is not as expected becomes a problem with its line. */
export interface JsonReader {
  root: JsonPlace;
  /** Everything found so far, in the order it was found. */
  problems: PluginProblem[];
  lineOf(place: JsonPlace): number;
  /** Writes down a problem at a place. */
  report(place: JsonPlace, message: string): void;
  /** The values of an object with these keys; any other key, or anything but an object, is a problem. */
  fields<K extends string>(place: JsonPlace, what: string, keys: readonly K[]): (key: K) => JsonPlace;
  /** The items of a list; none where there is no value. */
  items(place: JsonPlace, what: string): JsonPlace[];
  /** The members of an object with any keys; none where there is no value. */
  members(place: JsonPlace, what: string): [string, JsonPlace][];
  /** A text without NUL, which no program can be given; undefined where there is no value. */
  text(place: JsonPlace, what: string): string | undefined;
  /** true or false; false where there is no value. */
  flag(place: JsonPlace, what: string): boolean;
  /** A whole number within bounds; undefined where there is no value. */
  integer(place: JsonPlace, what: string, bounds: { min: number; max: number }): number | undefined;
}

/** A reader of a text that is valid JSON. */
export function createJsonReader(text: string): JsonReader {
  const lines = jsonLines(text);
  const problems: PluginProblem[] = [];
  const lineOf = ({ path }: JsonPlace): number => lines(path);
  const report = (place: JsonPlace, message: string): void => {
    problems.push({ line: lineOf(place), message });
  };
  const membersOf = (place: JsonPlace, what: string): JsonObject => {
    const object = schemaAt(place.value);
    if (object === undefined && place.value !== undefined) report(place, `${what} must be an object`);
    return object ?? {};
  };
  const members = (place: JsonPlace, what: string): [string, JsonPlace][] =>
    Object.entries(membersOf(place, what)).map(([key, value]) => [key, { value, path: [...place.path, key] }]);
  return {
    root: { value: JSON.parse(text) as JsonValue, path: [] },
    problems,
    lineOf,
    report,
    fields(place, what, keys) {
      const known: ReadonlySet<string> = new Set(keys);
      const found = new Map(members(place, what));
      for (const [key, at] of found)
        if (!known.has(key)) report(at, `${what}: unknown key "${key}"; known are ${keys.join(", ")}`);
      return (key) => found.get(key) ?? { value: undefined, path: [...place.path, key] };
    },
    items(place, what) {
      if (place.value === undefined) return [];
      if (Array.isArray(place.value)) return place.value.map((value, at) => ({ value, path: [...place.path, at] }));
      report(place, `${what} must be a list`);
      return [];
    },
    members,
    text(place, what) {
      const { value } = place;
      if (value === undefined || (typeof value === "string" && !value.includes("\0"))) return value;
      report(place, `${what} must be a text without NUL`);
      return undefined;
    },
    flag(place, what) {
      if (typeof place.value === "boolean" || place.value === undefined) return place.value ?? false;
      report(place, `${what} must be true or false`);
      return false;
    },
    integer(place, what, { min, max }) {
      const { value } = place;
      if (value === undefined) return undefined;
      if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
      report(place, `${what} must be a whole number from ${min} to ${max}`);
      return undefined;
    },
  };
}
