import { analyzeText } from "../../lib/command/analyze.ts";
import { commandsOf, type Plan, type PlanCommand } from "../../lib/command/plan/plan.ts";
import { runInBash } from "./bash-oracle.ts";
import { readCorpus } from "./corpus.ts";
import { mutate, random } from "./mutate.ts";

/** What a run of the fuzzer found. */
export interface Differences {
  mutants: number;
  /** How many of them may run without being asked about, and were run in bash. */
  allowed: number;
  /** Texts for which bash runs what their plan does not have. */
  found: { text: string; ran: string[] }[];
}

/** Compares what bash runs with the plan of each mutant that has one. */
export async function findDifferences(mutants: number, seed: number): Promise<Differences> {
  const next = random(seed);
  const texts = [...readCorpus("allow"), ...readCorpus("allow"), ...readCorpus("ask"), ...readCorpus("block")].map(
    ({ text }) => text,
  );
  const found: Differences["found"] = [];
  let open: { text: string; plan: Plan }[] = [];
  let allowed = 0;
  const compare = async (): Promise<void> => {
    const ran = await runInBash(open.map(({ text }) => text));
    if (ran.length !== open.length) throw new Error(`bash ran ${ran.length} of ${open.length} texts`);
    for (const [at, { text, plan }] of open.entries()) {
      const other = ran[at]?.find((argv) => !commandsOf(plan).some((command) => isOf(argv, command)));
      if (other !== undefined) found.push({ text, ran: other });
    }
    allowed += open.length;
    open = [];
  };
  for (let count = 0; count < mutants; count++) {
    const text = mutate(texts[Math.floor(next() * texts.length)] ?? "", texts, next);
    const { plan } = analyzeText(text);
    if (plan !== undefined) open.push({ text, plan });
    if (open.length >= 2000) await compare();
  }
  if (open.length > 0) await compare();
  return { mutants, allowed, found };
}

/** True where an argument list is what a command of a plan would run; words that are patterns or below the home folder differ. */
function isOf(argv: readonly string[], { exe, argv: planned }: PlanCommand): boolean {
  const name = exe.slice(exe.lastIndexOf("/") + 1);
  if ((argv[0] ?? "").replace(/^.*\//, "") !== name) return false;
  if (planned.some((word) => typeof word !== "string")) return true;
  const words = planned.slice(1);
  let at = 0;
  // The plan may have words of its own between those that were written.
  for (const word of argv.slice(1)) {
    while (at < words.length && words[at] !== word) at += 1;
    if (at === words.length) return false;
    at += 1;
  }
  return true;
}
