import { KINDS } from "./kinds.ts";
import type { Usage } from "./rule.ts";

/** What follows an option: nothing, a value, or one only behind "=". */
export interface Flag {
  value: "none" | "required" | "optional";
  kind: string;
}

/** Operands of one kind, in their order. */
export interface Operand {
  kind: string;
  least: number;
  most: number;
}

/** A usage as it is checked. */
export interface Grammar {
  usage: Usage;
  flags: ReadonlyMap<string, Flag>;
  numbers: boolean;
  operands: readonly Operand[];
  punctuation: ReadonlySet<string>;
  recursive: ReadonlySet<string>;
  needs: ReadonlySet<string>;
  instead: ReadonlySet<string>;
  subcommands: ReadonlyMap<string, Grammar>;
}

/** Reads the words of a usage. Throws where one is not understood: the table is code, and read when it is loaded. */
export function grammarOf(usage: Usage): Grammar {
  const words = list(usage.flags);
  return {
    usage,
    flags: new Map(words.filter((word) => word !== "-#").map(flagOf)),
    numbers: words.includes("-#"),
    operands: list(usage.operands).map(operandOf),
    punctuation: new Set(list(usage.punctuation)),
    recursive: new Set(list(usage.recursive)),
    needs: new Set(list(usage.needs)),
    instead: new Set(list(usage.instead)),
    subcommands: new Map(
      Object.entries(usage.subcommands ?? {}).flatMap(([names, inner]) => {
        const grammar = grammarOf(inner);
        return list(names).map((name): [string, Grammar] => [name, grammar]);
      }),
    ),
  };
}

function list(text: string | undefined): string[] {
  return (text ?? "").split(/\s+/).filter((word) => word !== "");
}

const PATHS = new Set(["path", "file", "tree"]);

function flagOf(word: string): [string, Flag] {
  const match = /^(--?[A-Za-z0-9@][\w.-]*)(\?)?(?:=(.+))?$/.exec(word);
  if (match === null) throw new Error(`not an option: ${word}`);
  const [, name = "", optional, kind] = match;
  if (kind === undefined) return [name, { value: "none", kind: "" }];
  return [name, { value: optional === undefined ? "required" : "optional", kind: known(kind, word) }];
}

function operandOf(word: string): Operand {
  const [, kind = "", quantity = ""] = /^([+\w|-]+?)([?*+]|\{\d+\})?$/.exec(word) ?? [];
  const most = quantity === "*" || quantity === "+" ? Number.POSITIVE_INFINITY : 1;
  const times = /^\{(\d+)\}$/.exec(quantity)?.[1];
  if (times !== undefined) return { kind: known(kind, word), least: 0, most: Number(times) };
  return { kind: known(kind, word), least: quantity === "" || quantity === "+" ? 1 : 0, most };
}

/** A kind that is known, or a choice of words: "a|b". */
function known(kind: string, word: string): string {
  if (!KINDS.has(kind) && !PATHS.has(kind) && !kind.includes("|")) throw new Error(`no kind of value: ${word}`);
  return kind;
}
