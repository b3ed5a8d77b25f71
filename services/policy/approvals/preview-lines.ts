import type { PreviewFact } from "../../../lib/tool/preview.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import { escapeInvisible } from "./escape-invisible.ts";

/** How long a preview in one line may be, in UTF-16 code units. */
const LINE_LIMIT = 200;

/**
 * What the arguments stand for on the device, for an approver; or why that is not known. Every line of a value is marked, so that
 * none can look like a line of the summary. Empty for a tool that has no preview. Pure.
 */
export function previewLines(call: Pick<ValidatedRequest, "hasPreview" | "preview" | "request">): string[] {
  if (!call.hasPreview) return [];
  if (call.preview === undefined) return [`Preview:   none: ${escapeInvisible(whyNone(call))}`];
  return [
    "Preview:   what the device finds there now; where it finds something else when the call is to run, nothing runs",
    ...call.preview.facts.flatMap(factLines),
  ];
}

/** The first fact in one line, for lists. Empty where there is no preview. Pure. */
export function previewLine({ preview }: Pick<ValidatedRequest, "preview">): string {
  const [fact] = preview?.facts ?? [];
  if (fact === undefined) return "";
  const line = escapeInvisible(`${fact.name}: ${fact.value.split("\n")[0] ?? ""}`);
  return line.length <= LINE_LIMIT ? line : `${line.slice(0, LINE_LIMIT).toWellFormed()} …`;
}

function whyNone({ request }: Pick<ValidatedRequest, "request">): string {
  if (request.devices.length > 0) return "each of the devices would have its own";
  return request.preview?.missing || "the device was not asked";
}

function factLines({ name, value }: PreviewFact): string[] {
  const lines = value.split("\n").map(escapeInvisible);
  if (lines.length === 1) return [`  ${escapeInvisible(name)}: ${lines[0]}`];
  return [`  ${escapeInvisible(name)}:`, ...lines.map((line) => `    | ${line}`)];
}
