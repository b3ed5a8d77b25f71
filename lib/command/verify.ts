import { PROGRAM_RULES } from "./allow/allow.ts";
import { analyzeText } from "./analyze.ts";
import { BLOCK_RULES } from "./block/block.ts";

/** The examples of the rules that do not hold, each as "rule: text". Empty where the table says what it means. */
export function failingExamples(): string[] {
  const failing: string[] = [];
  const expect = (rule: string, texts: readonly string[], holds: (text: string) => boolean): void => {
    for (const text of texts) if (!holds(text)) failing.push(`${rule}: ${text}`);
  };
  for (const { program, match, not_match } of PROGRAM_RULES) {
    expect(program, match, (text) => analyzeText(text).verdict === "allow");
    expect(program, not_match, (text) => analyzeText(text).verdict !== "allow");
  }
  for (const { name, match, not_match } of BLOCK_RULES) {
    expect(name, match, (text) => analyzeText(text).reasons.some(({ rule }) => rule === name));
    expect(name, not_match, (text) => analyzeText(text).verdict !== "block");
  }
  return failing;
}
