import type { DescMessage } from "@bufbuild/protobuf";

/** From a field's name in the .proto file to its ProtoJSON name, where the two differ: max_bytes → maxBytes. */
export type JsonNames = ReadonlyMap<string, string>;

/** The longest tool name. Providers allow 64 to 128 characters; announced tools need room for a prefix. */
const TOOL_NAME_LENGTH = 64;

const TOOL_NAME = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/;
const SNAKE_CASE_WORD = /\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b/g;

/** True for a name that a built-in tool may have, such as "fs.read". */
export function isToolName(name: string): boolean {
  return name.length <= TOOL_NAME_LENGTH && TOOL_NAME.test(name);
}

const SERVICE_NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** True for a name that a device's owner may give a service of the machine, such as "printer". */
export function isServiceName(name: string): boolean {
  return SERVICE_NAME.test(name);
}

/** The name of a tool of an announced service: "printer:print". A built-in tool has no ":" in its name. */
export function announcedName(service: string, name: string): string {
  return `${service}:${name}`;
}

/** The names of all fields of the messages. */
export function jsonNames(messages: Iterable<DescMessage>): JsonNames {
  const names = new Map<string, string>();
  for (const message of messages) {
    for (const field of message.fields) names.set(field.name, field.jsonName);
  }
  return names;
}

/**
 * A comment as a caller should read it: the .proto file's field names become the names the caller has to use.
 * Other words with underscores stay.
 */
export function withJsonNames(text: string, names: JsonNames): string {
  return text.replace(SNAKE_CASE_WORD, (word) => names.get(word) ?? word);
}
