import { PROGRAM_RULES } from "../../lib/command/allow/allow.ts";
import { analyzeText } from "../../lib/command/analyze.ts";
import { BLOCK_RULES } from "../../lib/command/block/block.ts";
import type { Subject } from "./subject.ts";

/** The analysis of a command, which policy makes of each call that has one: of the rules' own examples, by what it says of them. */
export function commandSubjects(): Subject[] {
  return [
    subject(
      "analysis, allow",
      PROGRAM_RULES.flatMap(({ match }) => match),
    ),
    subject(
      "analysis, ask",
      PROGRAM_RULES.flatMap(({ not_match }) => not_match),
    ),
    subject(
      "analysis, block",
      BLOCK_RULES.flatMap(({ match }) => match),
    ),
  ];
}

/** One text a call, in turn. */
function subject(name: string, texts: readonly string[]): Subject {
  let at = 0;
  return {
    name,
    call: async () => {
      analyzeText(texts[at++ % texts.length] ?? "");
    },
  };
}
