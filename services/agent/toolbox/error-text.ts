import { ConnectError } from "@connectrpc/connect";
import type { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonName, reasonOf } from "../../../lib/fault/fault.ts";
import { stripControls } from "../../../lib/sanitise/sanitise.ts";
import { wrapUntrusted } from "./envelope.ts";
import { shortenText } from "./shorten.ts";

/** An error as it goes to a model. */
export interface ErrorFacts {
  reason: ErrorReason;
  /** In words, as whoever refused or failed gave it. */
  message: string;
  /** What helps to act on it, by name. Entries with an empty value are left out. */
  metadata?: Record<string, string>;
  /** What broke the schema. */
  violations?: readonly { field: string; message: string }[];
  /** What the model can do about it. */
  advice?: string;
}

const MAX_LINE = 2000;
const MAX_REST = 8000;

/**
 * The text of an error for a model: "error: <reason>: <message>", then what helps, a line each. The message is passed
 * on as it is; lines after its first one hold what a program printed and go into an envelope for untrusted data.
 */
export function errorText(error: ErrorFacts, from: string): string {
  const [first = "", ...rest] = stripControls(error.message).trim().split("\n");
  const output = rest.join("\n").trim();
  return [
    `error: ${reasonName(error.reason)}: ${oneLine(first)}`,
    ...Object.entries(error.metadata ?? {})
      .filter(([, value]) => value !== "")
      .map(([key, value]) => `${oneLine(key)}: ${oneLine(value)}`),
    ...(error.violations ?? []).map(({ field, message }) => `- ${oneLine(field)}: ${oneLine(message)}`),
    ...(error.advice === undefined ? [] : [error.advice]),
    ...(output === "" ? [] : [wrapUntrusted(shortenText(output, MAX_REST), from)]),
  ].join("\n");
}

/** The facts of something that was thrown. Only a fault's own message is passed on: others may tell what is private. */
export function thrownFacts(thrown: unknown): ErrorFacts {
  const detail = faultDetail(thrown);
  if (detail === undefined) return { reason: reasonOf(thrown), message: "something unexpected happened" };
  return {
    reason: reasonOf(thrown),
    message: ConnectError.from(thrown).rawMessage,
    metadata: detail.metadata,
    violations: detail.violations,
  };
}

function oneLine(text: string): string {
  return shortenText(stripControls(text).replace(/\s+/gu, " ").trim(), MAX_LINE);
}
