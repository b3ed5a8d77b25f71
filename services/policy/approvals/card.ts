import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { cutText } from "./cut.ts";
import { NOT_SHOWN } from "./redact.ts";
import { visible } from "./visible.ts";

/** What a card is made from. Everything in it may come from whoever asks. */
export interface CardFacts {
  deviceName: string;
  deviceId: string;
  /** All devices of a fan-out, when the card is for the whole of it; empty otherwise. */
  devices: readonly { name: string; id: string }[];
  tool: string;
  capability: string;
  principalId: string;
  roles: readonly string[];
  source: string;
  purpose: string;
  message: string;
  ruleIds: readonly string[];
  /** Without secrets; undefined where it is not known which they are. */
  args: JsonObject | undefined;
  argsDigest: string;
  timeoutMs: number;
}

/** The longest value that is shown whole, in UTF-16 code units: more than the longest shell text. */
const VALUE_LIMIT = 8192;

/** The same in a card that became too long. */
const SHORT_VALUE_LIMIT = 200;

/** The longest card, in UTF-16 code units, without the list of a fan-out's devices: that is never cut. */
const CARD_LIMIT = 65_536;

/**
 * The text that an approver is shown and whose digest they approve: the device or devices, the tool, who asks and why, and
 * every argument. What cannot be seen is shown as \u{hex}; a line break inside a value is shown as \u{a} and continues on an
 * indented line, so that no value can look like a line of the card. Long values are cut, with length and digest. Pure.
 */
export function renderCard(facts: CardFacts): string {
  const devices = deviceLines(facts).map((line) => `${line}\n`);
  return `${devices.join("")}${renderRest(facts)}`;
}

function deviceLines({ devices, deviceName, deviceId }: CardFacts): string[] {
  if (devices.length === 0) return [`Device:    ${visible(deviceName)} (${visible(deviceId)})`];
  const count = devices.length === 1 ? "1 device" : `${devices.length} devices`;
  return [
    `Devices:   a fan-out to ${count}; approving runs the tool on each of them`,
    ...devices.map(({ name, id }) => `  ${visible(name)} (${visible(id)})`),
  ];
}

function renderRest(facts: CardFacts): string {
  const whole = render(facts, VALUE_LIMIT);
  if (whole.length <= CARD_LIMIT) return whole;
  const short = render(facts, SHORT_VALUE_LIMIT);
  if (short.length <= CARD_LIMIT) return short;
  return `${short.slice(0, CARD_LIMIT)}\n[cut: this call has too many arguments to show; do not approve what you cannot see]\n`;
}

function render(facts: CardFacts, limit: number): string {
  const lines = [
    `Tool:      ${visible(facts.tool)} (${visible(facts.capability)})`,
    `Asked by:  ${visible(facts.principalId)} (${facts.roles.map(visible).join(", ") || "no role"}) by ${facts.source}`,
    `Purpose:   ${facts.purpose === "" ? "(none given)" : `in the caller's own words: ${quoted(facts.purpose, limit)}`}`,
    `Held:      ${visible(facts.message)} (${facts.ruleIds.map(visible).join(", ")})`,
    facts.timeoutMs === 0 ? "Time:      the tool's own limit" : `Time:      at most ${facts.timeoutMs} ms`,
    "Arguments:",
    ...argumentLines(facts.args, limit),
    `Digest:    SHA-256 of all arguments ${facts.argsDigest}`,
  ];
  return `${lines.join("\n")}\n`;
}

function argumentLines(args: JsonObject | undefined, limit: number): string[] {
  if (args === undefined) return [`  ${NOT_SHOWN}`];
  const lines = [...leaves("", args)].map(([path, value]) => `  ${path}: ${shown(value, limit)}`);
  return lines.length === 0 ? ["  (none)"] : lines;
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
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return `${path}["${visible(key)}"]`;
  return path === "" ? key : `${path}.${key}`;
}

function shown(value: JsonValue, limit: number): string {
  return typeof value === "string" ? quoted(value, limit) : JSON.stringify(value);
}

function quoted(text: string, limit: number): string {
  const cut = cutText(text, limit);
  const body = `"${visible(cut.shown).replaceAll("\\u{a}", "\\u{a}\n      ")}"`;
  return cut.note === "" ? body : `${body} ${cut.note}`;
}
