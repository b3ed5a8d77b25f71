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

/** A path behind another: "params" and "argv[2]" are "params.argv[2]". */
export function joinPath(prefix: string, path: string): string {
  if (prefix === "" || path === "") return prefix + path;
  return path.startsWith("[") ? prefix + path : `${prefix}.${path}`;
}
