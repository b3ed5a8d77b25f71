import type { CommandContext, Output } from "../command-context.ts";

/** Ways to set text off. Each gives the text back as it is where the output takes no colors. */
export type Style = Readonly<Record<"bold" | "dim" | "red" | "green" | "yellow" | "cyan", (text: string) => string>>;

/** The codes of ECMA-48 SGR that turn each on and off. */
const CODES: Readonly<Record<keyof Style, readonly [on: number, off: number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

const NAMES = Object.keys(CODES) as (keyof Style)[];

/** No colors at all. */
export const plain: Style = styleOf((_, text) => text);

const colored: Style = styleOf(([on, off], text) => (text === "" ? "" : `\x1b[${on}m${text}\x1b[${off}m`));

/** The style of an output: colors on a terminal only, and never with NO_COLOR (https://no-color.org) or TERM=dumb. */
export function styleFor({ env }: Pick<CommandContext, "env">, output: Output): Style {
  const wanted = output.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  return wanted ? colored : plain;
}

function styleOf(paint: (codes: readonly [number, number], text: string) => string): Style {
  return Object.fromEntries(NAMES.map((name) => [name, (text: string) => paint(CODES[name], text)])) as Style;
}
