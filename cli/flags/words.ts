import { UsageError } from "../errors/usage-error.ts";

/** One flag as it was typed. */
export interface FlagWord {
  /** With its dashes and without a value, such as "--timeout-ms". */
  name: string;
  /** What stood after "="; undefined where there was none. */
  attached: string | undefined;
}

/** The words of a command line, to be read from left to right. */
export interface Words {
  /** The next word without taking it; undefined at the end. */
  peek(): string | undefined;
  take(): string | undefined;
  /** All that is left. */
  rest(): string[];
}

export function createWords(words: readonly string[]): Words {
  let at = 0;
  return {
    peek: () => words[at],
    take: () => words[at++],
    rest() {
      const rest = words.slice(at);
      at = words.length;
      return rest;
    },
  };
}

/** The flag that a word is; undefined for any other word: a value, "-", or "--". */
export function flagWord(word: string): FlagWord | undefined {
  const found = /^(--[^=]+|-[A-Za-z]+)(?:=(.*))?$/su.exec(word);
  return found?.[1] === undefined ? undefined : { name: found[1], attached: found[2] };
}

/**
 * The value of a flag: what is attached to it, else the next word. Throws a UsageError where there is none; a next word
 * that begins with a dash is another flag, but for a negative number and a lone dash.
 */
export function valueFor({ name, attached }: FlagWord, words: Words): string {
  if (attached !== undefined) return attached;
  const next = words.peek();
  if (next === undefined) throw new UsageError(`${name} needs a value`);
  if (next.startsWith("-") && !/^-(?:\d.*)?$/s.test(next)) {
    throw new UsageError(`${name} needs a value`, [`for one that begins with a dash write ${name}=${next}`]);
  }
  words.take();
  return next;
}
