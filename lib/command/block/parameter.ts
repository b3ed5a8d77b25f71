import type { ParameterExpansionPart, Word } from "unbash";
import { type State, UNKNOWN } from "./state.ts";

/** What a device's environment holds. Other variables are unset: an environment is built, not inherited. */
const ENVIRONMENT: ReadonlyMap<string, string> = new Map([
  ["HOME", "~"],
  ["PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  ["SHELL", "/bin/bash"],
  ["BASH", "/bin/bash"],
  ["IFS", " \t\n"],
  ..."USER LOGNAME LANG LC_ALL TERM TMPDIR HOSTNAME UID EUID PPID RANDOM SECONDS LINENO BASHPID EPOCHSECONDS OSTYPE MACHTYPE"
    .split(" ")
    .map((name): [string, string] => [name, UNKNOWN]),
]);

/** The values of a variable: one, or those of an array. Unset gives an empty list. */
export function valuesOf(state: State, name: string): readonly string[] {
  if (name === "@" || name === "*") return state.positional;
  if (name === "0") return state.vars.get(name) ?? ["bash"];
  if (/^\d+$/.test(name)) return state.positional.slice(Number(name) - 1, Number(name));
  if (name === "#") return [String(state.positional.length)];
  if (/^[?$!_-]$/.test(name)) return [UNKNOWN];
  const set = state.vars.get(name);
  if (set !== undefined) return set;
  if (name === "PWD") return [state.folder ?? "."];
  const given = ENVIRONMENT.get(name);
  return given === undefined ? [] : [given];
}

/** What `${…}` stands for. More than one value only for arrays. */
export function expansionOf(
  state: State,
  part: ParameterExpansionPart,
  textOf: (word: Word | undefined) => string,
): readonly string[] {
  const name = part.prefix === "!" ? (valuesOf(state, part.parameter)[0] ?? "") : part.parameter;
  const all = valuesOf(state, name);
  if (part.prefix === "#") return [String(all[0]?.length ?? 0)];
  const index = part.index === undefined ? undefined : textOf(part.index);
  const some = index === undefined || index === "@" || index === "*" ? all : indexed(all, Number(index));
  const values = index === undefined && name !== "@" && name !== "*" ? some.slice(0, 1) : some;
  const operation = part.operation;
  if (operation === undefined) return values;
  switch (operation.type) {
    case "Default":
      return withDefault(state, name, values, operation.operator, textOf(operation.operand));
    case "Slice":
      return sliced(values, Number(textOf(operation.offset)), operation.length && Number(textOf(operation.length)));
    case "Remove":
      return values.map((value) => without(value, operation.operator, textOf(operation.operand)));
    case "Replace":
      return values.map((value) =>
        replaced(value, operation.operator, textOf(operation.pattern), textOf(operation.replacement)),
      );
    case "CaseModification":
      return values.map((value) => recased(value, operation.operator));
    case "Transform":
      return values;
    default:
      return [UNKNOWN];
  }
}

/** One of an array's values; any of them where its key is a name. */
function indexed(all: readonly string[], index: number): readonly string[] {
  return Number.isInteger(index) ? all.slice(index, index + 1) : all;
}

function withDefault(
  state: State,
  name: string,
  values: readonly string[],
  operator: string,
  operand: string,
): readonly string[] {
  const has = operator.startsWith(":") ? (values[0] ?? "") !== "" : values.length > 0;
  if (operator.endsWith("+")) return has ? [operand] : [];
  if (has) return values;
  if (operator.endsWith("=")) state.vars.set(name, [operand]);
  return operator.endsWith("?") ? [] : [operand];
}

function sliced(values: readonly string[], offset: number, length: number | undefined): readonly string[] {
  if (!Number.isInteger(offset) || (length !== undefined && !Number.isInteger(length))) return [UNKNOWN];
  return values.map((value) => {
    const start = offset < 0 ? Math.max(0, value.length + offset) : offset;
    const end = length === undefined ? undefined : length < 0 ? value.length + length : start + length;
    return value.slice(start, end);
  });
}

function without(value: string, operator: string, pattern: string): string {
  const body = patternSource(pattern, operator.length === 2);
  const source = operator.startsWith("#") ? `^(?:${body})` : `(?:${body})$`;
  // A greedy tail has to begin as early, and a lazy one as late, as it can.
  if (operator === "%") {
    const match = new RegExp(`^([\\s\\S]*)(?:${patternSource(pattern, false)})$`).exec(value);
    return match?.[1] ?? value;
  }
  return value.replace(new RegExp(source), "");
}

function replaced(value: string, operator: string, pattern: string, replacement: string): string {
  if (pattern === "") return value;
  const body = patternSource(pattern, true);
  const source = operator === "/#" ? `^(?:${body})` : operator === "/%" ? `(?:${body})$` : body;
  return value.replace(new RegExp(source, operator === "//" ? "g" : ""), () => replacement);
}

function patternSource(pattern: string, greedy: boolean): string {
  const escaped = pattern.replace(/[.+^${}()|\\[\]]/g, "\\$&");
  return escaped.replace(/\*+/g, greedy ? "[\\s\\S]*" : "[\\s\\S]*?").replace(/\?/g, "[\\s\\S]");
}

function recased(value: string, operator: string): string {
  const change = (text: string): string => (operator.startsWith("^") ? text.toUpperCase() : text.toLowerCase());
  return operator.length === 2 ? change(value) : change(value.slice(0, 1)) + value.slice(1);
}
