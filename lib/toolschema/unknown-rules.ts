import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type FieldRules,
  type MessageRules,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { LIMITS, LimitExceeded } from "./limits.ts";
import { reachableMessages } from "./reach.ts";
import { rulesOf } from "./rules.ts";

/**
 * What keeps the rules of an announced tool's input from being checked here; undefined where nothing does. Rules written in
 * CEL, and rules of another's own, are programs of another party: they could run for as long as they like.
 */
export function foreignRule(input: DescMessage): string | undefined {
  for (const [message] of reachableMessages(input)) {
    if (hasOption(message, messageRules) && isForeignMessageRule(getOption(message, messageRules)))
      return message.typeName;
    const field = message.fields.find((candidate) => isForeign(rulesOf(candidate)));
    if (field !== undefined) return nameOf(field);
  }
  return undefined;
}

/** A field of these messages that can hold a message of any type, which nothing here could check; undefined where none does. */
export function anyField(roots: readonly DescMessage[]): string | undefined {
  const messages = roots.flatMap((root) => [...reachableMessages(root).keys()]);
  const found = messages
    .flatMap((message) => message.fields)
    .find(({ message }) => message?.typeName === "google.protobuf.Any");
  return found && nameOf(found);
}

function isForeignMessageRule({ cel, celExpression, $unknown }: MessageRules): boolean {
  return cel.length > 0 || celExpression.length > 0 || hasUnknown({ $unknown });
}

/**
 * Throws LimitExceeded for a pattern in the rules of an announced tool's input that would cost too much to match. Patterns
 * take time linear in the text (RE2), and as many steps for each of its characters as they are long, repetitions included.
 */
export function assertPatterns(input: DescMessage): void {
  for (const [message] of reachableMessages(input)) {
    for (const field of message.fields) for (const pattern of patternsOf(rulesOf(field))) assertPattern(pattern);
  }
}

function patternsOf(rules: FieldRules | undefined): string[] {
  const type = rules?.type;
  switch (type?.case) {
    case "string":
    case "bytes":
      return [type.value.pattern];
    case "repeated":
      return patternsOf(type.value.items);
    case "map":
      return [...patternsOf(type.value.keys), ...patternsOf(type.value.values)];
    default:
      return [];
  }
}

/** Throws LimitExceeded for a pattern that would cost too much to match. */
export function assertPattern(pattern: string): void {
  if (pattern.length > LIMITS.pattern_size) throw new LimitExceeded("pattern_size");
  const counts = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, least, most]) => Number(most || least));
  if (counts.reduce((sum, count) => sum + count, 0) > LIMITS.pattern_size) throw new LimitExceeded("pattern_size");
}

function isForeign(rules: FieldRules | undefined): boolean {
  if (rules === undefined) return false;
  if (rules.cel.length > 0 || rules.celExpression.length > 0 || hasUnknown(rules)) return true;
  const { type } = rules;
  if (type.value !== undefined && hasUnknown(type.value)) return true;
  if (type.case === "repeated") return isForeign(type.value.items);
  if (type.case === "map") return isForeign(type.value.keys) || isForeign(type.value.values);
  return false;
}

/** Rules that we do not know by number: of a newer protovalidate, or predefined by the files themselves. */
function hasUnknown({ $unknown }: { $unknown?: readonly unknown[] | undefined }): boolean {
  return $unknown !== undefined && $unknown.length > 0;
}

function nameOf(field: DescField): string {
  return `${field.parent.typeName}.${field.name}`;
}
