import { allowed } from "./allow/allow.ts";
import type { Place } from "./allow/paths.ts";
import { blockedArgv, blockedText } from "./block/block.ts";
import type { BlockRule } from "./block/rules/rule.ts";
import { asItLooks, hiddenCharacter } from "./hygiene.ts";
import { LIMITS, TooComplex } from "./limits.ts";
import { draftOf } from "./plan/build.ts";
import { isCovered } from "./plan/cover.ts";
import type { Plan, PlanWord } from "./plan/plan.ts";
import { parseShell } from "./shell/parse.ts";

/**
 * What a command comes to: it only looks and may run without a person being asked (allow), a person decides (ask), it is
 * refused whatever anybody's rights (block), or it is more than can be looked at (reject).
 */
export type Verdict = "allow" | "ask" | "block" | "reject";

export interface Analysis {
  verdict: Verdict;
  /** Why; the first is for the caller. */
  reasons: readonly Reason[];
  /** What is executed where the verdict is "allow". */
  plan?: Plan;
}

export interface Reason {
  /** The rule, such as "blocklist/delete-system" or "program/find". */
  rule: string;
  /** A sentence that begins with a verb; its subject is the command. */
  message: string;
}

export type { Place };

/** Analyzes a shell text. Pure; never throws. */
export function analyzeText(text: string, place: Place = {}): Analysis {
  return guarded(() => {
    if (text.trim() === "") return ask("command/empty", "runs nothing");
    const blocked = blockedText(text, place.cwd);
    if (blocked.length > 0) return block(blocked);
    const hidden = hiddenCharacter(text);
    if (hidden !== undefined) {
      const looks = blockedText(asItLooks(text), place.cwd);
      if (looks.length > 0) return block(looks);
      return ask("command/hidden-character", `has ${hidden} in it`);
    }
    const { script, valid } = parseShell(text);
    if (!valid) return ask("command/syntax", "is not valid shell text");
    const draft = draftOf(script);
    if (!draft.ok) return ask("command/not-a-plan", draft.why);
    if (!isCovered(script, text)) return ask("command/syntax", "has a part that is not understood");
    return verdictOf(allowed(draft.items, place));
  });
}

/** Analyzes an argument list, which no shell reads, and what the program gets as its input. Pure; never throws. */
export function analyzeArgv(argv: readonly string[], { stdin, ...place }: Place & { stdin?: string } = {}): Analysis {
  return guarded(() => {
    if ((argv[0] ?? "").trim() === "") return ask("command/empty", "runs nothing");
    const blocked = blockedArgv(argv, stdin, place.cwd);
    if (blocked.length > 0) return block(blocked);
    const line = argv.join(" ");
    if (line.length > LIMITS.argv) return ask("command/too-long", "is longer than what may run unasked");
    const hidden = hiddenCharacter(line);
    if (hidden !== undefined) return ask("command/hidden-character", `has ${hidden} in it`);
    const words: PlanWord[] = [...argv];
    return verdictOf(
      allowed([{ op: ";", pipe: [{ words, redir: stdin === undefined ? [] : [[0, "text", stdin]] }] }], place),
    );
  });
}

function guarded(analyze: () => Analysis): Analysis {
  try {
    return analyze();
  } catch (e: unknown) {
    if (e instanceof TooComplex)
      return { verdict: "reject", reasons: [{ rule: "command/too-complex", message: e.message }] };
    // Text that the parser or a walk cannot take, such as one nested too deep for the stack, is not looked at: fail closed.
    if (e instanceof RangeError)
      return {
        verdict: "reject",
        reasons: [{ rule: "command/too-complex", message: `is more than can be followed in ${LIMITS.steps} steps` }],
      };
    throw e;
  }
}

function ask(rule: string, message: string): Analysis {
  return { verdict: "ask", reasons: [{ rule, message }] };
}

function block(rules: readonly BlockRule[]): Analysis {
  return { verdict: "block", reasons: rules.map(({ name, message }) => ({ rule: name, message })) };
}

function verdictOf(result: ReturnType<typeof allowed>): Analysis {
  if (!result.ok) return ask(result.rule, result.why);
  return {
    verdict: "allow",
    reasons: result.rules.map((rule) => ({ rule, message: "only looks" })),
    plan: result.plan,
  };
}
