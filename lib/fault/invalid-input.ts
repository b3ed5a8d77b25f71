import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "./fault.ts";

/** What is wrong with one field of an input. */
export interface InputProblem {
  /** Where, in JSON names: "argv[2]". Empty for the input as a whole. */
  field: string;
  /** The rule that is broken, such as "string.max_bytes", "type" or "unknown_field". */
  rule: string;
  /** Safe to show. */
  message: string;
}

/**
 * The fault INVALID_INPUT with one violation for each problem; `field` and `rule` of its metadata are the first's.
 *
 * @param prefix where the input stands in what the caller sent, such as "params". Default: the input is all of it.
 */
export function invalidInput(problems: readonly InputProblem[], prefix = ""): ConnectError {
  const violations = problems.map(({ field, message }) => ({ field: joinPath(prefix, field), message }));
  const message = violations.map((one) => (one.field === "" ? one.message : `${one.field}: ${one.message}`)).join("; ");
  const metadata = { field: violations[0]?.field ?? "", rule: problems[0]?.rule ?? "" };
  return fault(ErrorReason.INVALID_INPUT, metadata, { message, violations });
}

/**
 * The fault INVALID_INPUT for one field.
 *
 * @param message what is wrong with the field, such as "is required".
 * @param text the error's own message. Default: the field, then `message`.
 */
export function invalidField(
  field: string,
  rule: string,
  message: string,
  { text = `${field} ${message}`, cause }: { text?: string; cause?: unknown } = {},
): ConnectError {
  return fault(ErrorReason.INVALID_INPUT, { field, rule }, { message: text, violations: [{ field, message }], cause });
}

/** The fault INVALID_INPUT for a field that has to be set. */
export function missingField(field: string): ConnectError {
  return invalidField(field, "required", "is required");
}

/** A path behind another: "params" and "argv[2]" are "params.argv[2]". */
export function joinPath(prefix: string, path: string): string {
  if (prefix === "" || path === "") return prefix + path;
  return path.startsWith("[") ? prefix + path : `${prefix}.${path}`;
}
