import type { DescMessage } from "@bufbuild/protobuf";
import { wellKnownSchema } from "./well-known.ts";

/**
 * The root and every message that it can hold, each with the number of fields that hold it. Messages that ProtoJSON
 * writes in a form of their own, such as Timestamp, are not among them.
 */
export function reachableMessages(root: DescMessage): Map<DescMessage, number> {
  const uses = new Map([[root, 0]]);
  // The map grows while it is walked: an iterator over a Map visits what is added.
  for (const [message] of uses) {
    for (const { message: held } of message.fields) {
      if (held && !wellKnownSchema(held.typeName)) uses.set(held, (uses.get(held) ?? 0) + 1);
    }
  }
  return uses;
}
