import { ConnectError } from "@connectrpc/connect";
import type { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonName, reasonOf } from "../fault/fault.ts";
import { stripControls } from "../sanitize/sanitize.ts";
import { wrapUntrusted } from "./envelope.ts";
import { shortenText } from "./shorten.ts";

/** An error as it goes to a model. */
export interface ErrorFacts {
  reason: ErrorReason;
  /** In words, as the party that refused or failed gave it. */
  message: string;
  /** What helps to act on it, by name. Entries with an empty value are left out. */
  metadata?: Record<string, string>;
  /** What broke the schema. */
  violations?: readonly { field: string; message: string }[];
  /** What Reeve itself knows of the call, by name, where the rest is the device's. Entries with an empty value are left out. */
  own?: Record<string, string>;
  /** True where message, metadata and violations are a device's: a program, a repository or a hostile device chose them. */
  fromDevice?: boolean;
  /** What the model can do about it. */
  advice?: string;
}

const MAX_LINE = 2000;
const MAX_REST = 8000;

/**
 * The text of an error for a model: "error: <reason>: <message>", then what helps, a line each. Of a device's error the
 * reason alone stands there; its message, metadata and violations go into an envelope for untrusted data, bounded. Lines
 * after a message's first one go there in any case: they hold what something printed.
 */
export function errorText(error: ErrorFacts, from: string): string {
  const { reason, advice, own = {} } = error;
  const [first = "", ...rest] = stripControls(error.message).trim().split("\n");
  const details = [
    ...lines(error.metadata ?? {}),
    ...(error.violations ?? []).map(({ field, message }) => `- ${oneLine(field)}: ${oneLine(message)}`),
  ];
  const device = error.fromDevice ?? false;
  const data = (device ? [oneLine(first), ...details, ...rest] : rest).join("\n").trim();
  return [
    `error: ${reasonName(reason)}: ${device ? `what ${oneLine(from)} says about it is below` : oneLine(first)}`,
    ...(device ? [] : details),
    ...lines(own),
    ...(advice === undefined ? [] : [advice]),
    ...(data === "" ? [] : [wrapUntrusted(shortenText(data, MAX_REST), from)]),
  ].join("\n");
}

function lines(values: Record<string, string>): string[] {
  return Object.entries(values)
    .filter(([, value]) => value !== "")
    .map(([key, value]) => `${oneLine(key)}: ${oneLine(value)}`);
}

/** The facts of something that was thrown. Only a fault's own message is passed on: others may hold what is private. */
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
