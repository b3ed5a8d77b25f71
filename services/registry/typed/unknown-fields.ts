import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { joinPath } from "../../../lib/serve/interceptors/validate.ts";

/**
 * Throws INVALID_INPUT for a message that was sent with a field that this version does not know. Dropping it would run
 * something else than what was asked for; JSON with such a field is refused as well.
 */
export function assertNoUnknownFields<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): void {
  const found = findUnknown(reflect(desc, message), "");
  if (found === undefined) return;
  const said = "there is no such field in this version";
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: found, rule: "unknown_field" },
    { violations: [{ field: found, message: said }], message: `${found}: ${said}` },
  );
}

/** Where the first such field is, named by its number: "options.#7". */
function findUnknown(message: ReflectMessage, path: string): string | undefined {
  const unknown = message.getUnknown()?.[0];
  if (unknown !== undefined) return joinPath(path, `#${unknown.no}`);
  for (const field of message.fields) {
    if (field.message === undefined || !message.isSet(field)) continue;
    const found = first(heldIn(message, field.number), ([step, held]) => {
      const at = joinPath(path, field.jsonName);
      return findUnknown(held, joinPath(at, step));
    });
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The messages that a field holds, each with its place in the field. */
function* heldIn(message: ReflectMessage, number: number): Generator<[string, ReflectMessage]> {
  const field = message.findNumber(number);
  switch (field?.fieldKind) {
    case "message":
      yield ["", message.get(field)];
      break;
    case "list":
      if (field.listKind === "message") {
        let index = 0;
        for (const item of message.get(field)) yield [`[${index++}]`, item as ReflectMessage];
      }
      break;
    case "map":
      if (field.mapKind === "message") {
        for (const [key, value] of message.get(field)) yield [`[${JSON.stringify(key)}]`, value as ReflectMessage];
      }
      break;
    default:
  }
}

function first<T, R>(items: Iterable<T>, find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
