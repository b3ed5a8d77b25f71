import type { JsonValue } from "@bufbuild/protobuf";
import { SandboxLevel, SandboxLevelSchema } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { parseDuration } from "../../../lib/yaml/duration.ts";
import { createYamlReader, type YamlReader as ReaderOf, type YamlNode } from "../../../lib/yaml/yaml-reader.ts";
import { valueName, valueNames } from "../facts/facts.ts";
import type { Obligations } from "./obligations.ts";
import { EFFECTS, type Effect, isEffect } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";

type YamlReader = ReaderOf<PolicyProblem>;

/** A policy file as it is written; expressions and examples are still text and data. */
export interface PolicyFile {
  /** How long an approval waits, in milliseconds. */
  approvalTtlMs: number;
  /** How long an approval covers a call that waits for its device, or the calls of a fan-out, in milliseconds. */
  approvalValidMs: number;
  /** True when a principal may not approve its own call. */
  fourEyes: boolean;
  /** How long a grant is valid, in milliseconds. */
  grantTtlMs: number;
  /** In the order of the file. */
  rules: RuleText[];
}

export interface RuleText {
  id: string;
  line: number;
  effect: Effect;
  /** Names, or beginnings that end in "*". Empty: every tool. */
  tools: Written[];
  /** A CEL expression. */
  when: Written;
  /** What it asks of the calls that it allows. */
  obligations: Obligations;
  message: string;
  match: ExampleText[];
  noMatch: ExampleText[];
}

/** A text and where it stands. */
export interface Written {
  text: string;
  /** The line of the text's first character. */
  line: number;
}

export interface ExampleText {
  line: number;
  value: JsonValue;
}

/** The file, or everything that is wrong with its form. */
export type PolicyFileResult = { ok: true; file: PolicyFile } | { ok: false; problems: PolicyProblem[] };

/** The largest policy file, in UTF-16 code units. */
const MAX_LENGTH = 1024 * 1024;

/** The longest that a grant may be valid, in milliseconds: devices refuse more. */
const MAX_GRANT_TTL_MS = 300_000;

/** The longest that any call may run, in milliseconds. */
const MAX_RUN_MS = 3_600_000;

/** The longest that an approval may wait, or cover what waits, in milliseconds. */
const MAX_APPROVAL_TTL_MS = 30 * 86_400_000;

const RULE_ID = /^[a-z][a-z0-9._/-]{0,63}$/;
const RESERVED_ID = /^(blocklist|command|mode)\//;
const TOOL_PATTERN = /^(\*|[a-z][a-z0-9_.:-]{0,127}\*?)$/;
const MAX_MESSAGE = 500;
const RULE_KEYS = ["id", "effect", "tools", "when", "obligations", "message", "match", "no_match"];
const OBLIGATION_KEYS = ["max_run", "sandbox"];

/** Reads a policy file's form. Unknown keys, repeated keys and repeated rule ids are problems. */
export function parsePolicyFile(text: string): PolicyFileResult {
  if (text.length > MAX_LENGTH) return { ok: false, problems: [{ line: 1, message: "the file is over 1 MiB" }] };
  const reader = createYamlReader<PolicyProblem>(text);
  if (reader.problems.length > 0) return { ok: false, problems: reader.problems };
  const file = readFile(reader);
  if (reader.problems.length > 0) return { ok: false, problems: reader.problems };
  return { ok: true, file };
}

function readFile(reader: YamlReader): PolicyFile {
  const top = reader.fields(reader.root, "a policy file", ["version", "approvals", "grants", "rules"]);
  if (reader.data(top.get("version")) !== 1) reader.report(top.get("version"), "version must be 1");
  const approvals = reader.fields(top.get("approvals"), "approvals", ["ttl", "valid", "four_eyes"]);
  const grants = reader.fields(top.get("grants"), "grants", ["ttl"]);
  const rules = reader.items(top.get("rules"), "rules").map((node) => readRule(reader, node));
  if (rules.length === 0) reader.report(top.get("rules"), "rules must hold at least one rule");
  reportRepeatedIds(reader, rules);
  return {
    approvalTtlMs: duration(reader, approvals.get("ttl"), "approvals.ttl", 600_000, MAX_APPROVAL_TTL_MS),
    approvalValidMs: duration(reader, approvals.get("valid"), "approvals.valid", 86_400_000, MAX_APPROVAL_TTL_MS),
    fourEyes: reader.flag(approvals.get("four_eyes"), "approvals.four_eyes") ?? false,
    grantTtlMs: duration(reader, grants.get("ttl"), "grants.ttl", 60_000, MAX_GRANT_TTL_MS),
    rules,
  };
}

function duration(reader: YamlReader, node: YamlNode, what: string, byDefault: number, most: number): number {
  const text = reader.text(node, what);
  if (text === undefined) return byDefault;
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0 && ms <= most) return ms;
  reader.report(node, `${what} must be a duration such as "60s", at most ${most / 1000}s`);
  return byDefault;
}

function readRule(reader: YamlReader, node: YamlNode): RuleText {
  const before = reader.problems.length;
  const fields = reader.fields(node, "a rule", RULE_KEYS);
  const rule: RuleText = {
    id: ruleId(reader, node, fields.get("id")),
    line: reader.lineOf(node),
    effect: effect(reader, node, fields.get("effect")),
    tools: reader.items(fields.get("tools"), "tools").map((item) => toolPattern(reader, item)),
    when: expression(reader, fields.get("when")),
    obligations: obligations(reader, fields),
    message: message(reader, node, fields.get("message")),
    match: examples(reader, fields.get("match"), "match"),
    noMatch: examples(reader, fields.get("no_match"), "no_match"),
  };
  for (const problem of reader.problems.slice(before)) problem.ruleId = rule.id;
  return rule;
}

function ruleId(reader: YamlReader, rule: YamlNode, node: YamlNode): string {
  const id = reader.text(node, "id") ?? "";
  if (!RULE_ID.test(id)) reader.report(node ?? rule, `id must match ${RULE_ID.source}`);
  else if (RESERVED_ID.test(id))
    reader.report(node, 'ids that begin with "blocklist/", "command/" or "mode/" are kept for Reeve');
  return id;
}

function effect(reader: YamlReader, rule: YamlNode, node: YamlNode): Effect {
  const name = reader.text(node, "effect") ?? "";
  if (isEffect(name)) return name;
  reader.report(node ?? rule, `effect must be one of ${EFFECTS.join(", ")}`);
  return "deny";
}

function obligations(reader: YamlReader, rule: ReadonlyMap<string, YamlNode>): Obligations {
  const node = rule.get("obligations");
  if (node === undefined) return {};
  if (reader.text(rule.get("effect"), "effect") !== "allow") {
    reader.report(node, "obligations belong to a rule that allows: nothing else runs without a person");
    return {};
  }
  const stated = reader.fields(node, "obligations", OBLIGATION_KEYS);
  const [run, level] = [stated.get("max_run"), stated.get("sandbox")];
  return {
    ...(run !== undefined && { maxRunMs: duration(reader, run, "max_run", MAX_RUN_MS, MAX_RUN_MS) }),
    ...(level !== undefined && { sandbox: sandboxLevel(reader, level) }),
  };
}

const SANDBOX_LEVELS = [SandboxLevel.NONE, SandboxLevel.WORKSPACE, SandboxLevel.READ_ONLY] as const;

function sandboxLevel(reader: YamlReader, node: YamlNode): SandboxLevel {
  const name = reader.text(node, "sandbox") ?? "";
  const level = SANDBOX_LEVELS.find((each) => valueName(SandboxLevelSchema, each) === name);
  if (level !== undefined) return level;
  reader.report(node, `sandbox must be one of ${valueNames(SandboxLevelSchema).join(", ")}`);
  return SandboxLevel.READ_ONLY;
}

function toolPattern(reader: YamlReader, node: YamlNode): Written {
  const text = reader.text(node, "a tool") ?? "";
  if (!TOOL_PATTERN.test(text)) reader.report(node, `"${text}" is no tool's name and no beginning of one with "*"`);
  return { text, line: reader.lineOf(node) };
}

function expression(reader: YamlReader, node: YamlNode): Written {
  const value = reader.data(node);
  const text = typeof value === "boolean" ? String(value) : (reader.text(node, "when") ?? "true");
  const inBlock = node !== null && node !== undefined && "type" in node && String(node.type).startsWith("BLOCK");
  // The text of a block begins on the line after its "|" or ">".
  return { text, line: reader.lineOf(node) + (inBlock ? 1 : 0) };
}

function message(reader: YamlReader, rule: YamlNode, node: YamlNode): string {
  const text = (reader.text(node, "message") ?? "").trim();
  if (text === "" || text.length > MAX_MESSAGE) {
    reader.report(node ?? rule, `message must say why, in at most ${MAX_MESSAGE} characters`);
  }
  return text;
}

function examples(reader: YamlReader, node: YamlNode, what: string): ExampleText[] {
  return reader.items(node, what).map((item) => ({ line: reader.lineOf(item), value: reader.data(item) }));
}

function reportRepeatedIds(reader: YamlReader, rules: readonly RuleText[]): void {
  const seen = new Set<string>();
  for (const { id, line } of rules) {
    if (seen.has(id)) reader.problems.push({ line, ruleId: id, message: "the id is used twice" });
    seen.add(id);
  }
}
