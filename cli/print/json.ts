import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";

/** What a terminal would act on or a reader cannot see, and JSON.stringify leaves as it is. */
const UNSAFE = /[\x7f-\x9f\u2028\u2029]|[\p{Default_Ignorable_Code_Point}--[\ufe0e\ufe0f]]/gv;

/** One JSON document for a program to read, safe on a terminal too. Ends with a newline. */
export function jsonDocument(value: JsonValue): string {
  return `${JSON.stringify(value, undefined, 2).replace(UNSAFE, escapeUnits)}\n`;
}

/** The same on one line, for a stream of documents. */
export function jsonLine(value: JsonValue): string {
  return `${JSON.stringify(value).replace(UNSAFE, escapeUnits)}\n`;
}

/** A message as ProtoJSON, with every field that has a presence of its own left out only where it is absent. */
export function wholeJson<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonValue {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

/** JSON's escape: one for each UTF-16 unit. */
function escapeUnits(text: string): string {
  return Array.from(
    { length: text.length },
    (_, index) => `\\u${text.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("");
}
