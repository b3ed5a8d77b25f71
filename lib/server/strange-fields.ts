import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { invalidInput, joinPath } from "../fault/invalid-input.ts";

/** What is strange about a message, and where. */
interface Strange {
  readonly path: string;
  readonly rule: "unknown_field" | "reserved_key";
}

/** A field that can hold something strange: messages, or keys that a caller chooses. */
interface Place {
  readonly name: string;
  readonly jsonName: string;
  /** The name of the oneof that the field is in. */
  readonly oneof: string | undefined;
  readonly kind: "message" | "list" | "map";
  /** Of the messages in it; undefined for scalars. */
  readonly desc: DescMessage | undefined;
}

/** A message as protobuf-es keeps it. */
type Held = Readonly<Record<string, unknown>>;

const SAID = {
  unknown_field: "there is no such field in this version",
  reserved_key: "the key __proto__ is not allowed",
} as const;

/**
 * Throws INVALID_INPUT for a message that came with a field that this version does not know, or a map with the key
 * `__proto__`, however deep. Dropping the one would run something else than what was asked for, and the other means something
 * else to each who reads it; in JSON both are refused when it is parsed. Looks at messages and the keys of maps only, well
 * under a microsecond for a call.
 */
export function assertNothingStrange<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): void {
  const found = inMessage(desc, message as unknown as Held);
  if (found === undefined) return;
  const { path: field, rule } = found;
  throw invalidInput([{ field, rule, message: SAID[rule] }]);
}

const known = new WeakMap<DescMessage, readonly Place[]>();

function placesIn(desc: DescMessage): readonly Place[] {
  let places = known.get(desc);
  if (places === undefined) {
    places = desc.fields.flatMap((field) => placeOf(field) ?? []);
    known.set(desc, places);
  }
  return places;
}

function placeOf(field: DescField): Place | undefined {
  const { localName: name, jsonName, oneof, message: desc, fieldKind } = field;
  if (fieldKind === "scalar" || fieldKind === "enum" || (fieldKind === "list" && desc === undefined)) return undefined;
  return { name, jsonName, oneof: oneof?.localName, kind: fieldKind, desc };
}

function inMessage(desc: DescMessage, message: Held): Strange | undefined {
  const unknown = message.$unknown as readonly { no: number }[] | undefined;
  if (unknown?.[0] !== undefined) return { path: `#${unknown[0].no}`, rule: "unknown_field" };
  for (const place of placesIn(desc)) {
    const value = valueAt(place, message);
    if (value === undefined) continue;
    const found = inPlace(place, value);
    if (found !== undefined) return { ...found, path: joinPath(place.jsonName, found.path) };
  }
  return undefined;
}

function valueAt({ name, oneof }: Place, message: Held): unknown {
  if (oneof === undefined) return message[name];
  const one = message[oneof] as { case?: string; value?: unknown };
  return one.case === name ? one.value : undefined;
}

function inPlace({ kind, desc }: Place, value: unknown): Strange | undefined {
  switch (kind) {
    case "message":
      return inValue(desc, value);
    case "list":
      return inList(value as readonly unknown[], (item) => inValue(desc, item));
    case "map":
      return inMap(value as Held, (item) => (desc === undefined ? undefined : inValue(desc, item)));
  }
}

/** A message, or where protobuf-es keeps it as JSON (google.protobuf.Struct) or as a scalar (wrappers), that. */
function inValue(desc: DescMessage | undefined, value: unknown): Strange | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (desc !== undefined && "$typeName" in value) return inMessage(desc, value as Held);
  return Array.isArray(value) ? inList(value, inJson) : inMap(value as Held, inJson, jsonKey);
}

function inJson(value: unknown): Strange | undefined {
  return inValue(undefined, value);
}

function inList(items: readonly unknown[], look: (item: unknown) => Strange | undefined): Strange | undefined {
  for (let index = 0; index < items.length; index++) {
    const found = look(items[index]);
    if (found !== undefined) return { ...found, path: joinPath(`[${index}]`, found.path) };
  }
  return undefined;
}

function inMap(
  map: Held,
  look: (item: unknown) => Strange | undefined,
  nameOf: (key: string) => string = mapKey,
): Strange | undefined {
  if (Object.hasOwn(map, "__proto__")) return { path: nameOf("__proto__"), rule: "reserved_key" };
  for (const key in map) {
    const found = look(map[key]);
    if (found !== undefined) return { ...found, path: joinPath(nameOf(key), found.path) };
  }
  return undefined;
}

function mapKey(key: string): string {
  return `[${JSON.stringify(key)}]`;
}

function jsonKey(key: string): string {
  return /^\w+$/.test(key) ? key : mapKey(key);
}
