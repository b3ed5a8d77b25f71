import {
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type JsonObject,
  type JsonValue,
} from "@bufbuild/protobuf";

/** Parses that one search may cost; a search that needs more names the part of the path that it has. */
const BUDGET = 2000;

interface Search {
  left: number;
}

/**
 * The path, such as "params.argv[2]" with keys as the caller wrote them, of the first value in a JSON body that does not
 * fit a message. protobuf-es names the field but not the way to it. Undefined: there is no body, or nothing is wrong.
 */
export function locateJsonError(desc: DescMessage, body: readonly Uint8Array[]): string | undefined {
  if (body.length === 0) return undefined;
  try {
    const json = JSON.parse(Buffer.concat(body).toString()) as JsonValue;
    if (fits(desc, json, { left: 1 })) return undefined;
    return inMessage(desc, json, { left: BUDGET }).replace(/^\./, "");
  } catch {
    return undefined; // not JSON: the strict check has said so already
  }
}

function inMessage(desc: DescMessage, json: JsonValue, search: Search): string {
  // Well-known types have JSON forms of their own, which their fields do not describe.
  if (!isObject(json) || desc.typeName.startsWith("google.protobuf.")) return "";
  const seen = new Set<DescField | DescOneof>();
  let repeated = "";
  for (const [key, value] of Object.entries(json)) {
    const field = desc.fields.find((candidate) => candidate.jsonName === key || candidate.name === key);
    if (field === undefined) return `.${key}`;
    if (!fits(desc, { [key]: value }, search)) return `.${key}${inField(desc, field, key, value, search)}`;
    // A field by both of its names, or two of a oneof: each fits by itself.
    const slot = field.oneof ?? field;
    if (seen.has(slot)) repeated ||= `.${key}`;
    seen.add(slot);
  }
  return repeated;
}

function inField(desc: DescMessage, field: DescField, key: string, value: JsonValue, search: Search): string {
  switch (field.fieldKind) {
    case "message":
      return inMessage(field.message, value, search);
    case "list": {
      if (!Array.isArray(value)) return "";
      const index = value.findIndex((item) => !fits(desc, { [key]: [item] }, search));
      const item = value[index];
      return item === undefined ? "" : `[${index}]${field.message ? inMessage(field.message, item, search) : ""}`;
    }
    case "map": {
      if (!isObject(value)) return "";
      const entry = Object.entries(value).find(([name, item]) => !fits(desc, { [key]: { [name]: item } }, search));
      if (entry === undefined) return "";
      return `[${JSON.stringify(entry[0])}]${field.message ? inMessage(field.message, entry[1], search) : ""}`;
    }
    default:
      return "";
  }
}

function fits(desc: DescMessage, json: JsonValue, search: Search): boolean {
  if (search.left-- <= 0) return true;
  try {
    fromJson(desc, json);
    return true;
  } catch {
    return false;
  }
}

function isObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
