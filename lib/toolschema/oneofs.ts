import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { message as messageRules, oneof as oneofRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/**
 * A sentence for each oneof of a message, and for each protovalidate oneof rule. A sentence and no keyword, because
 * providers refuse `oneOf` and its like at the root, and a model reads sentences.
 */
export function oneofSentences(message: DescMessage): string[] {
  const declared = message.oneofs.map((oneof) =>
    sentence(
      oneof.fields.map((field) => field.jsonName),
      hasOption(oneof, oneofRules) && getOption(oneof, oneofRules).required,
    ),
  );
  if (!hasOption(message, messageRules)) return declared;
  const { oneof: rules } = getOption(message, messageRules);
  const jsonNames = new Map(message.fields.map((field) => [field.name, field.jsonName]));
  const ruled = rules.map(({ fields, required }) =>
    sentence(
      fields.map((name) => jsonNames.get(name) ?? name),
      required,
    ),
  );
  return [...declared, ...ruled];
}

function sentence(names: readonly string[], required: boolean): string {
  return `Set ${required ? "exactly" : "at most"} one of ${names.join(", ")}.`;
}
