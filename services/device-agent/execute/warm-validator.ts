import { create } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { ToolEntry } from "../tools/index.ts";

/** A validator that has compiled the rules of these tools' inputs: the first use of each is slow. */
export function warmValidator(tools: Iterable<ToolEntry>): Validator {
  const validator = createValidator();
  for (const { input } of tools) validator.validate(input, create(input));
  return validator;
}
