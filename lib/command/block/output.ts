import { contentOf } from "./run.ts";
import { type State, UNKNOWN } from "./state.ts";

/** What a command prints, where that follows from its words and its input alone; UNKNOWN otherwise. */
export function outputOf(argv: readonly string[], state: State): string {
  const [path = "", ...args] = argv;
  const filter = FILTERS.get(path.replace(/^.*\//, ""));
  const output = filter?.(args, inputOf(args, state));
  return output === undefined || output.length > 16_384 ? UNKNOWN : output;
}

type Filter = (args: readonly string[], input: string) => string | undefined;

function inputOf(args: readonly string[], state: State): string {
  const files = args.filter((word) => word.includes("/") && !word.startsWith("-"));
  const [file] = files;
  if (file !== undefined && files.length === 1) return contentOf(file, state);
  return state.stdin ?? UNKNOWN;
}

const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["echo", (args) => echoed(args)],
  ["printf", (args) => printed(args)],
  ["cat", (_, input) => input],
  ["tac", (_, input) => `${input.replace(/\n$/, "").split("\n").reverse().join("\n")}\n`],
  ["rev", (_, input) => input.replace(/[^\n]+/g, (line) => Array.from(line).reverse().join(""))],
  ["tee", (_, input) => input],
  ["base64", (args, input) => (args.some(decodes) ? decoded(input, "base64") : Buffer.from(input).toString("base64"))],
  ["base32", () => undefined],
  [
    "openssl",
    (args, input) =>
      args.includes("-d") && args.some((word) => /base64|^-a$/.test(word)) ? decoded(input, "base64") : undefined,
  ],
  [
    "xxd",
    (args, input) =>
      args.some((word) => /^-[a-z]*r/.test(word)) ? decoded(input.replace(/\s/g, ""), "hex") : undefined,
  ],
  ["tr", (args, input) => translated(args, input)],
  ["sed", (args, input) => substituted(args, input)],
  ["head", (_, input) => input],
  ["tail", (_, input) => input],
  ["sort", (_, input) => input],
  ["which", (args) => args.findLast((word) => !word.startsWith("-"))],
  ["basename", (args) => args[0]?.replace(/^.*\//, "")],
  ["ls", (args) => listed(args)],
  ["ps", (args) => allProcesses(args.some((word) => /^-?(?:e|A|ax?|aux)[a-z]*$/.test(word)))],
  ["pgrep", (args) => allProcesses(args.some((word) => /^(?:\.[*+]?)?$/.test(word)))],
  ["true", () => ""],
  [":", () => ""],
]);

/** The process ids of all, as kill takes them. */
function allProcesses(all: boolean): string | undefined {
  return all ? "-1\n" : undefined;
}

/** Everything in a folder, as a pattern, or the folders themselves. */
function listed(args: readonly string[]): string | undefined {
  const folders = args.filter((word) => !word.startsWith("-"));
  if (args.some((word) => /^-[a-zA-Z]*d/.test(word))) return folders.map((folder) => `${folder}\n`).join("");
  return folders.length < 2 ? "*\n" : undefined;
}

function decodes(word: string): boolean {
  return /^-[a-zA-Z]*[dD]|^--d/.test(word);
}

function decoded(input: string, encoding: "base64" | "hex"): string | undefined {
  return input.includes(UNKNOWN) ? undefined : Buffer.from(input, encoding).toString("utf8");
}

function echoed(args: readonly string[]): string {
  const start = args.findIndex((word) => !/^-[neE]+$/.test(word));
  const text = (start < 0 ? [] : args.slice(start)).join(" ");
  return `${args.some((word) => /^-[nE]*e/.test(word)) ? unescaped(text) : text}\n`;
}

/** The text of printf: its format for as many words as there are. */
function printed(args: readonly string[]): string {
  const words = args[0] === "--" ? args.slice(1) : args;
  const [format = "", ...values] = words;
  let rest = values;
  let out = "";
  do {
    const before = rest.length;
    out += unescaped(format).replace(/%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))/g, (whole, kind: string | undefined) => {
      if (kind === undefined) return whole === "%%" ? "%" : whole;
      const [value = "", ...others] = rest;
      rest = others;
      return kind === "b" ? unescaped(value) : value;
    });
    if (rest.length === before) break;
  } while (rest.length > 0 && out.length < 16_384);
  return out;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["e", "\x1b"],
  ["a", "\x07"],
]);

function unescaped(text: string): string {
  const pattern = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|(0?[0-7]{1,3})|(.))/gs;
  return text.replace(pattern, (_, hex?: string, code?: string, octal?: string, char = "") => {
    if (hex !== undefined || code !== undefined) return String.fromCharCode(Number.parseInt(hex ?? code ?? "", 16));
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 255);
    return ESCAPES.get(char) ?? char;
  });
}

function translated(args: readonly string[], input: string): string | undefined {
  const removes = args.some((word) => /^-[a-z]*d/.test(word));
  const [from = "", to = ""] = args.filter((word) => !/^-[cdsCt]+$/.test(word)).map(charactersOf);
  if (removes)
    return Array.from(input)
      .filter((char) => !from.includes(char))
      .join("");
  if (to === "") return undefined;
  return Array.from(input)
    .map((char) => (from.includes(char) ? (to[Math.min(from.indexOf(char), to.length - 1)] ?? char) : char))
    .join("");
}

function charactersOf(set: string): string {
  return unescaped(set).replace(/(.)-(.)/gs, (_, from: string, to: string) => {
    const [start, end] = [from.charCodeAt(0), to.charCodeAt(0)];
    if (end < start || end - start > 255) return "";
    return String.fromCharCode(...Array.from({ length: end - start + 1 }, (_each, at) => start + at));
  });
}

/** One substitution of plain text, as in `sed s/x/y/g`. */
function substituted(args: readonly string[], input: string): string | undefined {
  const script = args.find((word) => !word.startsWith("-")) ?? "";
  const match = /^s([/|,#:])([\w .:,@-]*)\1([\w ./:,@-]*)\1(g?)$/.exec(script);
  if (match === null) return undefined;
  const [, , from = "", to = "", all] = match;
  return from === "" ? undefined : all === "g" ? input.replaceAll(from, to) : input.replace(from, to);
}
