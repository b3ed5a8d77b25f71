import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";
import { createMeters, type LimitName, type Meter } from "./limits.ts";

/** Options as they stand in a descriptor: extensions are unknown fields of it. */
type Options = { $unknown?: readonly { data: Uint8Array }[] | undefined } | undefined;

/**
 * Measures what a tool's schemas and the checks of its messages would be made of, before they are made. Takes time linear
 * in what it counts, and throws LimitExceeded at the first count that is over its limit. Well-known messages count as any
 * others.
 */
export function assertToolSize({ input, output }: Pick<DescMethod, "input" | "output">): void {
  const meter = createMeters();
  for (const message of messagesOf([input, output])) {
    meter("tool_rule_bytes").add(optionBytes(message.proto.options));
    for (const { proto } of message.oneofs) meter("tool_rule_bytes").add(optionBytes(proto.options));
    for (const field of message.fields) measureField(field, meter);
  }
  countLinks(input, meter("tool_links"));
  countLinks(output, meter("tool_links"));
}

function measureField(field: DescField, meter: (limit: LimitName) => Meter): void {
  meter("tool_fields").add(1);
  meter("tool_enum_values").add(field.enum?.values.length ?? 0);
  meter("tool_rule_bytes").add(optionBytes(field.proto.options));
}

function messagesOf(roots: readonly DescMessage[]): Set<DescMessage> {
  const found = new Set(roots);
  // A Set that grows is walked to its new end.
  for (const message of found) for (const { message: held } of message.fields) if (held) found.add(held);
  return found;
}

function optionBytes(options: Options): number {
  return (options?.$unknown ?? []).reduce((sum, { data }) => sum + data.length, 0);
}

/**
 * Counts the steps of protovalidate's planner. When it has planned a message it walks all ways from it that pass no field
 * twice, and their number is exponential in the number of fields where messages hold each other densely.
 */
function countLinks(root: DescMessage, meter: Meter): void {
  const planned = new Set<DescMessage>();
  const onWay = new Set<DescField>();
  const walk = (message: DescMessage): void => {
    meter.add(message.fields.length);
    for (const field of message.fields) {
      if (field.message === undefined || onWay.has(field)) continue;
      onWay.add(field);
      walk(field.message);
      onWay.delete(field);
    }
  };
  const plan = (message: DescMessage): void => {
    if (planned.has(message)) return;
    planned.add(message);
    for (const { message: held } of message.fields) if (held) plan(held);
    walk(message);
  };
  plan(root);
}
