import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { cutText } from "../../../lib/tool/cut.ts";
import { NOT_SHOWN, REDACTED } from "../../../lib/tool/redact.ts";
import { escapeInvisible } from "./escape-invisible.ts";

/** What a summary is made from. Everything in it may come from the caller. */
export interface SummaryFacts {
  deviceName: string;
  deviceId: string;
  /** All devices of a fan-out, when the summary is for all of it; empty otherwise. */
  devices: readonly { name: string; id: string }[];
  tool: string;
  capabilities: readonly string[];
  principalId: string;
  /** For people; may be empty. */
  principalName: string;
  roles: readonly string[];
  ingress: string;
  purpose: string;
  message: string;
  ruleIds: readonly string[];
  /** Without secrets; undefined where it is not known which they are. */
  args: JsonObject | undefined;
  /** What the analysis of its commands says, in lines that are safe to show; empty for a call without commands. */
  analysis: readonly string[];
  /** What the arguments stand for on the device: lines that show it as it may be shown. Empty where the tool has no preview. */
  preview: readonly string[];
  argsDigest: string;
  timeoutMs: number;
}

/** The longest value that is shown in full, in UTF-16 code units: more than the longest shell text. */
const VALUE_LIMIT = 8192;

/** The same in a summary that became too long. */
const SHORT_VALUE_LIMIT = 200;

/** The longest summary, in UTF-16 code units, without the list of a fan-out's devices: that is never cut. */
const SUMMARY_LIMIT = 65_536;

/** Of a summary that is too long even with short values, so many arguments are shown at the beginning and at the end. */
const SHOWN_ARGUMENTS = 50;

export interface Summary {
  text: string;
  /** Something was left out: the beginning and the end of each long value are shown, and how much is between. */
  isAbridged: boolean;
}

/**
 * The text that an approver is shown and whose digest they approve: the device or devices, the tool, the principal and why,
 * every argument, and what the analysis says of its commands. What cannot be seen is shown as \u{hex}; a line break inside a value is shown as \u{a} and continues on an
 * indented line, so that no value can look like a line of the summary. Of long values the beginning and the end are shown, with
 * the length of what is between and the digest of all of it. Pure.
 */
export function renderSummary(facts: SummaryFacts): Summary {
  const full = render(facts, Number.POSITIVE_INFINITY);
  const { text, isAbridged } = fits(full) && !hasLongValue(facts) ? { text: full, isAbridged: false } : abridged(facts);
  return { text: `${deviceText(facts)}${text}`, isAbridged };
}

/** The same text with nothing left out, however long it is. Pure. */
export function renderFull(facts: SummaryFacts): string {
  return `${deviceText(facts)}${render(facts, Number.POSITIVE_INFINITY)}`;
}

function deviceText(facts: SummaryFacts): string {
  return deviceLines(facts)
    .map((line) => `${line}\n`)
    .join("");
}

function fits(text: string): boolean {
  return text.length <= SUMMARY_LIMIT;
}

function hasLongValue({ args, purpose }: SummaryFacts): boolean {
  const values = [purpose, ...[...leaves("", args ?? {})].map(([, value]) => value)];
  return values.some((value) => typeof value === "string" && value.length > VALUE_LIMIT);
}

const ABRIDGED_LINE = "Abridged:  this summary does not show everything; to approve it, read the full text first\n";

function abridged(facts: SummaryFacts): Summary {
  const long = render(facts, VALUE_LIMIT);
  if (fits(long)) return { text: `${long}${ABRIDGED_LINE}`, isAbridged: true };
  return { text: `${render(facts, SHORT_VALUE_LIMIT, SHOWN_ARGUMENTS)}${ABRIDGED_LINE}`, isAbridged: true };
}

function deviceLines({ devices, deviceName, deviceId }: SummaryFacts): string[] {
  if (devices.length === 0) return [`Device:    ${escapeInvisible(deviceName)} (${escapeInvisible(deviceId)})`];
  const count = devices.length === 1 ? "1 device" : `${devices.length} devices`;
  return [
    `Devices:   a fan-out to ${count}; approving runs the tool on each of them`,
    ...devices.map(({ name, id }) => `  ${escapeInvisible(name)} (${escapeInvisible(id)})`),
  ];
}

function render(facts: SummaryFacts, limit: number, shown = Number.POSITIVE_INFINITY): string {
  const lines = [
    `Tool:      ${escapeInvisible(facts.tool)} (${facts.capabilities.map(escapeInvisible).join(", ")})`,
    `Asked by:  ${askedBy(facts)} by ${facts.ingress}`,
    `Purpose:   ${facts.purpose === "" ? "(none given)" : `in the caller's own words: ${quoted(facts.purpose, limit)}`}`,
    `Held:      ${escapeInvisible(facts.message)} (${facts.ruleIds.map(escapeInvisible).join(", ")})`,
    facts.timeoutMs === 0 ? "Time:      the tool's own limit" : `Time:      at most ${facts.timeoutMs} ms`,
    "Arguments:",
    ...withoutMiddle(argumentLines(facts.args, limit), shown),
    ...hiddenLines(facts.args),
    ...facts.analysis,
    ...withoutMiddle(facts.preview, shown, "lines"),
    `Digest:    SHA-256 of all arguments ${facts.argsDigest}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** "agent (5bb3ba4a590a; agent)": the name that people gave, the id that the log has, the roles. */
function askedBy({ principalId, principalName, roles }: SummaryFacts): string {
  const shownRoles = roles.map(escapeInvisible).join(", ") || "no role";
  const id = escapeInvisible(principalId);
  return principalName === "" || principalName === principalId
    ? `${id} (${shownRoles})`
    : `${escapeInvisible(principalName)} (${id}; ${shownRoles})`;
}

function argumentLines(args: JsonObject | undefined, limit: number): string[] {
  if (args === undefined) return [`  ${NOT_SHOWN}`];
  const lines = [...leaves("", args)].map(([path, value]) => `  ${path}: ${shown(value, limit)}`);
  return lines.length === 0 ? ["  (none)"] : lines;
}

/** How many hidden values are named. */
const NAMED = 20;

/** Names what the program gets and the summary does not show. */
function hiddenLines(args: JsonObject | undefined): string[] {
  const hidden = [...leaves("", args ?? {})].filter(([, value]) => value === REDACTED).map(([path]) => path);
  if (hidden.length === 0) return [];
  const more = hidden.length > NAMED ? ` and ${hidden.length - NAMED} more` : "";
  return [
    `Hidden:    secrets that the tool gets and no approver is shown: ${hidden.slice(0, NAMED).join(", ")}${more}`,
  ];
}

function withoutMiddle(lines: readonly string[], shown: number, what = "arguments"): readonly string[] {
  if (lines.length <= 2 * shown + 1) return lines;
  const note = `  [cut: ${lines.length - 2 * shown} of ${lines.length} ${what} are not shown here]`;
  return [...lines.slice(0, shown), note, ...lines.slice(-shown)];
}

function* leaves(path: string, value: JsonValue): Generator<[string, JsonValue]> {
  const isContainer = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (!isContainer) {
    if (path !== "") yield [path, value];
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* leaves(`${path}[${index}]`, item);
  } else {
    for (const [key, inner] of Object.entries(value)) yield* leaves(childPath(path, key), inner);
  }
}

function childPath(path: string, key: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return `${path}["${escapeInvisible(key)}"]`;
  return path === "" ? key : `${path}.${key}`;
}

function shown(value: JsonValue, limit: number): string {
  return typeof value === "string" ? quoted(value, limit) : JSON.stringify(value);
}

function quoted(text: string, limit: number): string {
  const { head, tail, note } = cutText(text, limit);
  return note === "" ? inQuotes(head) : `${inQuotes(head)} ${note} ${inQuotes(tail)}`;
}

function inQuotes(text: string): string {
  return `"${escapeInvisible(text).replaceAll("\\u{a}", "\\u{a}\n      ")}"`;
}
